/* SPDX-License-Identifier: Apache-2.0 */
#include "order_object.h"

#include <assert.h>

#include "util/pool.h"

#define CELLS_MIN      1024 /* fewer are not swept */
#define SEGMENTS_FEW   256
#define SEGMENT_SPARES 4096
#define OBJECT_SPARES  256
#define FREE_AT_ONCE                                                                               \
        16 /* segments of an object that is freed; the others wait for orderobject_sweep_freed() */

/* A range in which every byte has the same history. */
struct OrderSegment {
        uint64_t start, end;
        RB_ENTRY(OrderSegment) entry; /* object->segments, disjoint */
        OrderNodeSet writers;         /* the last writer, or none */
        OrderNodeSet readers;         /* since then */
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
/* Objects with segments left to free. */
static TAILQ_HEAD(, OrderObject) orderobject_freed = TAILQ_HEAD_INITIALIZER(orderobject_freed);

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
        object->n_steps += ordersegment_n_cells(segment);
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

/* A job that repeats its slices comes to the same segment again, or to the next one; as orderobject_find(). */
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

/* ---- life ---- */

int orderobject_new(uint64_t id, OrderObject **ret_object) {
        OrderObject *object = pool_get(&orderobject_pool);

        if (!object)
                return -ENOMEM;

        *object = (OrderObject){.id = id, .sweep_at = CELLS_MIN};
        *ret_object = object;
        return 0;
}

/* Return: how many segments were freed; fewer than @n_max: the object is gone. */
static size_t orderobject_free_some(OrderObject *object, size_t n_max) {
        OrderSegment *segment;
        size_t n = 0;

        while (n < n_max && (segment = RB_ROOT(&object->segments))) {
                orderobject_drop_segment(object, segment);
                n++;
        }
        if (n < n_max)
                pool_put(&orderobject_pool, object);
        return n;
}

OrderObject *orderobject_free(OrderObject *object) {
        if (object && orderobject_free_some(object, FREE_AT_ONCE) == FREE_AT_ONCE)
                TAILQ_INSERT_TAIL(&orderobject_freed, object, idle_link);
        return NULL;
}

size_t orderobject_sweep_freed(size_t n_max) {
        OrderObject *object;
        size_t n = 0, n_object;

        while (n < n_max && (object = TAILQ_FIRST(&orderobject_freed))) {
                TAILQ_REMOVE(&orderobject_freed, object, idle_link);
                n_object = orderobject_free_some(object, n_max - n);
                if (n_object == n_max - n)
                        TAILQ_INSERT_HEAD(&orderobject_freed, object, idle_link);
                n += n_object;
        }
        return n;
}

bool orderobject_has_freed(void) {
        return !TAILQ_EMPTY(&orderobject_freed);
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

/*
 * A job that comes to a segment again drops ended jobs that cost one check. All other ended jobs are
 * dropped here alone, when the number of cells has doubled, which costs O(1) per job.
 */
void orderobject_tidy(OrderObject *object, uint64_t *marks) {
        if (object->n_cells < object->sweep_at)
                return;

        object->n_steps += object->n_cells;
        orderobject_sweep(object, marks);
        object->sweep_at = 2 * object->n_cells + CELLS_MIN;
}

/* ---- accesses ---- */

/* Adds the jobs that an access of this kind must follow to the node's predecessors. */
static inline int orderobject_collect(OrderObject *object, OrderSegment *segment, bool write,
                                      OrderNode *node) {
        int r;

        object->n_steps++;
        ordernodeset_trim(&segment->writers);
        ordernodeset_trim(&segment->readers);
        r = ordernodeset_resolve(&node->predecessors, &segment->writers, node->mark);
        if (r < 0 || !write)
                return r;
        object->n_steps += segment->readers.n;
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
        size_t n_cells;

        while ((other = orderobject_next(segment, end))) {
                segment->end = other->end;
                orderobject_drop_segment(object, other);
        }
        n_cells = ordersegment_n_cells(segment);
        ordernodeset_clear(&segment->readers);
        ordernodeset_clear(&segment->writers);
        ordernodeset_append(&segment->writers, node);
        object->n_cells += ordersegment_n_cells(segment) - n_cells;
}

/* The range is covered by segments that end at its bounds. */
static int orderobject_note(OrderObject *object, OrderSegment *first, uint64_t end, bool write,
                            OrderNode *node) {
        OrderSegment *segment;
        int r;

        object->recent = first;
        for (segment = first; segment; segment = orderobject_next(segment, end)) {
                size_t n_cells = ordersegment_n_cells(segment);

                r = orderobject_collect(object, segment, write, node);
                if (r >= 0 && !write)
                        r = ordersegment_read(segment, node);
                object->n_cells += ordersegment_n_cells(segment) - n_cells;
                if (r < 0)
                        return r;
        }
        if (write)
                orderobject_write(object, first, end, node);
        return 0;
}

/* ---- wide accesses ---- */

/* An access that meets more segments, and jobs in them, than an access may cost. */
static bool orderobject_is_wide(OrderSegment *segment, uint64_t end, bool write) {
        size_t n = 0;

        for (; segment && segment->start < end; segment = ordersegment_next(segment)) {
                n += 1 + (size_t)segment->writers.n + (write ? segment->readers.n : 0);
                if (n > ORDEROBJECT_WIDE)
                        return true;
        }
        return false;
}

/*
 * A wide access takes all segments that it meets, whole: the node follows all jobs in them, and they
 * become one segment that it wrote. Thus it pays once for what earlier accesses added, and leaves one
 * segment to later ones.
 */
static int orderobject_take(OrderObject *object, OrderSegment *first, const OrderAccess *access,
                            OrderNode *node) {
        uint64_t end = access->offset + access->length;
        OrderSegment *segment;
        bool is_free = true;
        int r;

        for (segment = first; segment && segment->start < end;
             segment = ordersegment_next(segment)) {
                size_t n_cells = ordersegment_n_cells(segment);

                r = orderobject_collect(object, segment, true, node);
                object->n_cells -= n_cells - ordersegment_n_cells(segment);
                if (r < 0)
                        return r;
                is_free &= ordersegment_n_cells(segment) == 1;
        }

        orderobject_write(object, first, end, node);
        first->start = MIN(first->start, access->offset);
        first->end = MAX(first->end, end);
        object->recent = first;
        if (is_free && !access->write) {            /* all jobs there have ended */
                OrderNodeSet none = first->readers; /* empty, and may have memory */

                first->readers = first->writers;
                first->writers = none;
        }
        return 0;
}

/* A segment with many readers is not cut by another one, which counts as a reader of all of it. */
static void orderobject_widen(OrderObject *object, uint64_t *start, uint64_t *end) {
        OrderSegment *segment = orderobject_find(object, *start);

        if (segment && segment->start < *start && segment->readers.n > ORDEROBJECT_WIDE)
                *start = segment->start;
        segment = orderobject_find(object, *end - 1);
        if (segment && segment->start < *end && segment->end > *end &&
            segment->readers.n > ORDEROBJECT_WIDE)
                *end = segment->end;
}

/* Cuts segments at the access's bounds and fills its gaps. Returns where the access then begins and ends. */
static int orderobject_cut(OrderObject *object, const OrderAccess *access, OrderSegment **ret_first,
                           uint64_t *ret_end) {
        uint64_t start = access->offset, end = start + access->length;
        int r;

        if (!access->write)
                orderobject_widen(object, &start, &end);
        r = orderobject_cover_gaps(object, start, end);
        if (r < 0)
                return r;

        *ret_first = orderobject_find(object, start);
        *ret_end = end;
        return 0;
}

int orderobject_add(OrderObject *object, const OrderAccess *access, OrderNode *node) {
        uint64_t start = access->offset, end = start + access->length;
        OrderSegment *first = orderobject_find_repeated(object, start);
        int r = 0;

        if (!first || first->start >= end) {
                r = orderobject_add_segment(object, start, end, NULL, &first);
        } else if (first->start != start || first->end != end) {
                if (orderobject_is_wide(first, end, access->write))
                        return orderobject_take(object, first, access, node);
                r = orderobject_cut(object, access, &first, &end);
        }
        return r < 0 ? r : orderobject_note(object, first, end, access->write, node);
}
