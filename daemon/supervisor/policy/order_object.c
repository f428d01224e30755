/* SPDX-License-Identifier: Apache-2.0 */
#include "order_object.h"

#include <assert.h>

#include "util/pool.h"

#define CELLS_MIN        1024 /* with fewer cells an object is never merged into one segment */
#define CELLS_PER_ACCESS 64
#define SEGMENTS_FEW     256
#define SEGMENT_SPARES   4096
#define OBJECT_SPARES    256

/* A range in which every byte has the same history. */
struct OrderSegment {
        uint64_t start, end;
        RB_ENTRY(OrderSegment) entry; /* object->segments, disjoint */
        OrderNodeSet
                writers; /* the last writer; several once the object was merged into one segment */
        OrderNodeSet readers; /* since then */
};

static int ordersegment_compare(OrderSegment *a, OrderSegment *b) {
        return (a->start > b->start) - (a->start < b->start);
}

RB_GENERATE_STATIC(OrderSegmentTree, OrderSegment, entry, ordersegment_compare)

/* RB_NEXT takes three arguments or two, depending on libuv's version; the macro it calls takes one. */
static OrderSegment *ordersegment_next(OrderSegment *segment) {
        return OrderSegmentTree_RB_NEXT(segment);
}

/* ---- segments ---- */

static Pool ordersegment_pool = POOL(sizeof(OrderSegment), SEGMENT_SPARES);
static Pool orderobject_pool = POOL(sizeof(OrderObject), OBJECT_SPARES);

static OrderSegment *ordersegment_free(OrderSegment *segment) {
        if (!segment)
                return NULL;

        ordernodeset_finish(&segment->readers);
        ordernodeset_finish(&segment->writers);
        pool_put(&ordersegment_pool, segment);
        return NULL;
}
DEFINE_CLEANUP(OrderSegment, ordersegment_free)

static size_t ordersegment_n_cells(const OrderSegment *segment) {
        return 1 + (size_t)segment->writers.n + segment->readers.n;
}

static int orderobject_add_segment(OrderObject *object, uint64_t start, uint64_t end,
                                   const OrderSegment *like, OrderSegment **ret_segment) {
        _cleanup_(ordersegment_freep) OrderSegment *segment = pool_get(&ordersegment_pool);
        int r = 0;

        if (!segment)
                return -ENOMEM;

        *segment = (OrderSegment){.start = start, .end = end};
        if (like)
                r = ordernodeset_copy(&segment->writers, &like->writers);
        if (like && r >= 0)
                r = ordernodeset_copy(&segment->readers, &like->readers);
        if (r < 0)
                return r;

        RB_INSERT(OrderSegmentTree, &object->segments, segment);
        object->n_segments++;
        object->n_cells += ordersegment_n_cells(segment);
        *ret_segment = TAKE_PTR(segment);
        return 0;
}

static void orderobject_drop_segment(OrderObject *object, OrderSegment *segment) {
        RB_REMOVE(OrderSegmentTree, &object->segments, segment);
        object->n_segments--;
        object->n_cells -= ordersegment_n_cells(segment);
        if (object->recent == segment)
                object->recent = NULL;
        ordersegment_free(segment);
}

/* The first segment that ends behind @offset, or NULL. */
static OrderSegment *orderobject_find(OrderObject *object, uint64_t offset) {
        OrderSegment *segment = RB_ROOT(&object->segments), *found = NULL;

        while (segment) {
                if (segment->end <= offset) {
                        segment = RB_RIGHT(segment, entry);
                        continue;
                }
                found = segment;
                segment = RB_LEFT(segment, entry);
        }
        return found;
}

/* The neighbours of a segment within an access that is covered; they leave no gap. */
static OrderSegment *orderobject_next(OrderSegment *segment, uint64_t end) {
        if (segment->end >= end)
                return NULL;
        segment = ordersegment_next(segment);
        return segment && segment->start < end ? segment : NULL;
}

static int orderobject_split(OrderObject *object, uint64_t at) {
        OrderSegment *segment = orderobject_find(object, at), *rest;
        int r;

        if (!segment || segment->start >= at)
                return 0;

        r = orderobject_add_segment(object, at, segment->end, segment, &rest);
        if (r < 0)
                return r;
        segment->end = at;
        return 0;
}

/* A job that repeats its slices comes to the same segment again, or to the next one. */
static OrderSegment *orderobject_find_repeated(OrderObject *object, uint64_t start) {
        OrderSegment *segment = object->recent;

        if (segment && segment->start < start)
                segment = ordersegment_next(segment);
        return segment && segment->start == start ? segment : orderobject_find(object, start);
}

/* The existing segments between the ends, and new ones in the gaps. */
static int orderobject_cover_gaps(OrderObject *object, uint64_t start, uint64_t end) {
        uint64_t at = start;
        OrderSegment *added;
        int r;

        r = orderobject_split(object, start);
        if (r < 0)
                return r;
        r = orderobject_split(object, end);
        if (r < 0)
                return r;

        while (at < end) {
                OrderSegment *segment = orderobject_find(object, at);
                uint64_t next = segment ? MIN(segment->start, end) : end;

                if (next == at) {
                        at = segment->end;
                        continue;
                }
                r = orderobject_add_segment(object, at, next, NULL, &added);
                if (r < 0)
                        return r;
                at = next;
        }
        return 0;
}

/* Return: 0, with the first (usually the only) segment of the access; or -ENOMEM. */
static int orderobject_cover(OrderObject *object, uint64_t start, uint64_t end,
                             OrderSegment **ret_first) {
        OrderSegment *segment = orderobject_find_repeated(object, start);
        int r;

        if (!segment || segment->start >= end)
                return orderobject_add_segment(object, start, end, NULL, ret_first);

        if (segment->start != start || segment->end != end) {
                r = orderobject_cover_gaps(object, start, end);
                if (r < 0)
                        return r;
                segment = orderobject_find(object, start);
        }
        *ret_first = segment;
        return 0;
}

/* ---- life ---- */

int orderobject_new(uint64_t id, OrderObject **ret_object) {
        OrderObject *object = pool_get(&orderobject_pool);

        if (!object)
                return -ENOMEM;

        *object = (OrderObject){.id = id, .sweep_at = CELLS_MIN};
        *ret_object = object;
        return 0;
}

OrderObject *orderobject_free(OrderObject *object) {
        OrderSegment *segment;

        if (!object)
                return NULL;

        while ((segment = RB_MIN(OrderSegmentTree, &object->segments)))
                orderobject_drop_segment(object, segment);
        pool_put(&orderobject_pool, object);
        return NULL;
}

/* ---- upkeep ---- */

bool orderobject_is_small(const OrderObject *object) {
        return object->n_segments <= SEGMENTS_FEW && object->n_cells <= CELLS_MIN &&
               object->sweep_at <= 3 * CELLS_MIN;
}

static void orderobject_sweep(OrderObject *object, uint64_t *marks) {
        OrderSegment *segment, *next;

        for (segment = RB_MIN(OrderSegmentTree, &object->segments); segment; segment = next) {
                next = ordersegment_next(segment);
                object->n_cells -= ordersegment_n_cells(segment);
                ordernodeset_drop_spent(&segment->writers, marks);
                ordernodeset_drop_spent(&segment->readers, marks);
                object->n_cells += ordersegment_n_cells(segment);
                if (ordersegment_n_cells(segment) == 1)
                        orderobject_drop_segment(object, segment);
        }
}

/* Merges the object into one segment, with all remaining jobs as its writers. */
static void orderobject_unite(OrderObject *object, uint64_t *marks) {
        uint64_t mark = ++*marks;
        OrderNodeSet all = {0};
        OrderSegment *segment;
        int r;

        RB_FOREACH(segment, OrderSegmentTree, &object->segments) {
                r = ordernodeset_resolve(&all, &segment->writers, mark);
                if (r >= 0)
                        r = ordernodeset_resolve(&all, &segment->readers, mark);
                if (r < 0) {
                        ordernodeset_finish(&all);
                        return;
                }
        }

        segment = RB_MIN(OrderSegmentTree, &object->segments);
        while (object->n_segments > 1)
                orderobject_drop_segment(object, RB_MAX(OrderSegmentTree, &object->segments));
        segment->start = 0;
        segment->end = UINT64_MAX;
        ordernodeset_clear(&segment->readers);
        ordernodeset_finish(&segment->writers);
        segment->writers = all;
        object->n_cells = ordersegment_n_cells(segment);
}

/*
 * A job that comes to a segment again drops ended jobs that cost one check. All other ended jobs are
 * dropped here alone, when the number of cells has doubled, which costs O(1) per job. The rest may
 * still be many cells for few jobs: thousands of readers of the whole object, then thousands of its
 * slices.
 */
void orderobject_tidy(OrderObject *object, uint64_t *marks) {
        if (object->n_cells < object->sweep_at)
                return;

        orderobject_sweep(object, marks);
        object->sweep_at = 2 * object->n_cells + CELLS_MIN;
        if (object->n_cells > CELLS_MIN + CELLS_PER_ACCESS * object->n_accesses)
                orderobject_unite(object, marks);
}

/* ---- accesses ---- */

static int ordersegment_collect(OrderSegment *segment, bool write, OrderNode *node) {
        int r;

        ordernodeset_trim(&segment->writers);
        ordernodeset_trim(&segment->readers);
        r = ordernodeset_resolve(&node->predecessors, &segment->writers, node->mark);
        if (r < 0 || !write)
                return r;
        return ordernodeset_resolve(&node->predecessors, &segment->readers, node->mark);
}

static int ordersegment_read(OrderSegment *segment, OrderNode *node) {
        if (ordernodeset_last(&segment->readers) == node)
                return 0;
        return ordernodeset_append(&segment->readers, node);
}

/* Makes the node the writer of everything up to @end, which becomes one segment. */
static void orderobject_write(OrderObject *object, OrderSegment *segment, uint64_t end,
                              OrderNode *node) {
        OrderSegment *other;

        while ((other = orderobject_next(segment, end))) {
                segment->end = other->end;
                orderobject_drop_segment(object, other);
        }
        object->n_cells -= ordersegment_n_cells(segment);
        ordernodeset_clear(&segment->readers);
        ordernodeset_clear(&segment->writers);
        ordernodeset_append(&segment->writers, node);
        object->n_cells += ordersegment_n_cells(segment);
}

void orderobject_own(OrderObject *object, const OrderAccess *access, OrderNode *node) {
        OrderSegment *first = orderobject_find(object, access->offset);

        orderobject_write(object, first, access->offset + access->length, node);
}

int orderobject_add(OrderObject *object, const OrderAccess *access, OrderNode *node) {
        uint64_t end = access->offset + access->length;
        OrderSegment *first, *segment;
        int r;

        r = orderobject_cover(object, access->offset, end, &first);
        if (r < 0)
                return r;
        object->recent = first;

        for (segment = first; segment; segment = orderobject_next(segment, end)) {
                object->n_cells -= ordersegment_n_cells(segment);
                r = ordersegment_collect(segment, access->write, node);
                if (r >= 0 && !access->write)
                        r = ordersegment_read(segment, node);
                object->n_cells += ordersegment_n_cells(segment);
                if (r < 0)
                        return r;
        }
        if (access->write)
                orderobject_write(object, first, end, node);
        return 0;
}
