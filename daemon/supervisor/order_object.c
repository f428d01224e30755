/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/order_object.h"

#include <assert.h>

#include "util/pool.h"

#define CELLS_MIN        1024 /* below that an object is never seen as a whole */
#define CELLS_PER_ACCESS 64
#define SEGMENTS_FEW     256
#define SEGMENT_SPARES   4096
#define OBJECT_SPARES    256

/* A range in which every byte has the same history. */
struct OrderSegment {
        uint64_t start, end;
        RB_ENTRY(OrderSegment) entry; /* object->segments, disjoint */
        OrderNodeSet writers; /* the last one; several once the object was seen as a whole */
        OrderNodeSet readers; /* since then */
};

static int ordersegment_compare(OrderSegment *a, OrderSegment *b) {
        return (a->start > b->start) - (a->start < b->start);
}

RB_GENERATE_STATIC(OrderSegmentTree, OrderSegment, entry, ordersegment_compare)

/* RB_NEXT takes three arguments or two, by the version of libuv; what it calls takes one. */
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

/* With a place for one reader and one writer, so that nothing fails once all segments stand. */
static int orderobject_add_segment(OrderObject *object, uint64_t start, uint64_t end,
                                   const OrderSegment *like, OrderSegment **ret_segment) {
        _cleanup_(ordersegment_freep) OrderSegment *segment = pool_get(&ordersegment_pool);
        static const OrderSegment empty;
        int r;

        if (!segment)
                return -ENOMEM;

        *segment = (OrderSegment){.start = start, .end = end};
        r = ordernodeset_copy(&segment->writers, like ? &like->writers : &empty.writers);
        if (r < 0)
                return r;
        r = ordernodeset_copy(&segment->readers, like ? &like->readers : &empty.readers);
        if (r < 0)
                return r;

        RB_INSERT(OrderSegmentTree, &object->segments, segment);
        object->n_segments++;
        object->n_grown += 1 + segment->writers.n + segment->readers.n;
        *ret_segment = TAKE_PTR(segment);
        return 0;
}

static void orderobject_drop_segment(OrderObject *object, OrderSegment *segment) {
        RB_REMOVE(OrderSegmentTree, &object->segments, segment);
        object->n_segments--;
        object->n_cuts++;
        if (object->recent == segment)
                object->recent = NULL;
        ordersegment_free(segment);
}

/* The first that ends behind @offset, or NULL. */
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

/* Its neighbours within an access that was covered: those leave no gap. */
static OrderSegment *orderobject_next(OrderObject *object, OrderSegment *segment, uint64_t end) {
        if (segment->end >= end)
                return NULL;
        segment = ordersegment_next(segment);
        return segment && segment->start < end ? segment : NULL;
}

static OrderSegment *orderobject_first(OrderObject *object, const OrderAccess *access,
                                       const OrderPlace *place) {
        OrderSegment *segment;

        if (place->segment && place->n_cuts == object->n_cuts)
                return place->segment;
        segment = orderobject_find(object, access->offset);
        return segment && segment->start < access->offset + access->length ? segment : NULL;
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
        object->n_cuts++;
        return 0;
}

/* Whoever repeats his slices comes to the same one again, or to the one behind it. */
static OrderSegment *orderobject_find_repeated(OrderObject *object, uint64_t start) {
        OrderSegment *segment = object->recent;

        if (segment && segment->start < start)
                segment = ordersegment_next(segment);
        return segment && segment->start == start ? segment : orderobject_find(object, start);
}

/* Return: 0, also where it is more than one segment: there is none in @ret_segment then; or -ENOMEM. */
static int orderobject_cover_one(OrderObject *object, uint64_t start, uint64_t end,
                                 OrderSegment **ret_segment) {
        OrderSegment *segment = orderobject_find_repeated(object, start);

        *ret_segment = NULL;
        if (!segment || segment->start >= end)
                return orderobject_add_segment(object, start, end, NULL, ret_segment);
        if (segment->start != start || segment->end != end)
                return 0;

        *ret_segment = segment;
        ordernodeset_trim(&segment->readers);
        return ordernodeset_reserve(&segment->readers, 1);
}

/* Those there are between the ends, and new ones in the gaps. */
static int orderobject_cover_many(OrderObject *object, uint64_t start, uint64_t end) {
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

                if (next > at)
                        r = orderobject_add_segment(object, at, next, NULL, &added);
                else
                        r = ordernodeset_reserve(&segment->readers, 1);
                if (r < 0)
                        return r;
                at = next > at ? next : segment->end;
        }
        return 0;
}

int orderobject_cover(OrderObject *object, const OrderAccess *access, OrderPlace *ret_place) {
        uint64_t start = access->offset, end = start + access->length;
        OrderSegment *segment;
        int r;

        r = orderobject_cover_one(object, start, end, &segment);
        if (r >= 0 && !segment)
                r = orderobject_cover_many(object, start, end);
        if (r < 0)
                return r;

        if (segment)
                object->recent = segment;
        *ret_place = (OrderPlace){.segment = segment, .n_cuts = object->n_cuts};
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
        return object->n_segments <= SEGMENTS_FEW && object->n_grown <= CELLS_MIN &&
               object->sweep_at <= 2 * CELLS_MIN;
}

/* Return: how many segments and cells are left. */
static size_t orderobject_sweep(OrderObject *object, uint64_t *marks) {
        OrderSegment *segment, *next;
        size_t n = 0;

        for (segment = RB_MIN(OrderSegmentTree, &object->segments); segment; segment = next) {
                next = ordersegment_next(segment);
                ordernodeset_drop_spent(&segment->writers, marks);
                ordernodeset_drop_spent(&segment->readers, marks);
                if (segment->writers.n + segment->readers.n == 0)
                        orderobject_drop_segment(object, segment);
                else
                        n += 1 + segment->writers.n + segment->readers.n;
        }
        return n;
}

/* One segment in which everybody who is left counts as a writer. */
static int orderobject_unite(OrderObject *object, uint64_t *marks) {
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
                        return r;
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
        return 0;
}

/*
 * Ended jobs are dropped from segments only here, when those have doubled since,
 * which costs O(1) a job. What is left may still be many cells for few jobs:
 * thousands of readers of all of it, then thousands of slices of it.
 */
int orderobject_tidy(OrderObject *object, uint64_t *marks) {
        size_t n;

        if (object->n_grown < object->sweep_at)
                return 0;

        n = orderobject_sweep(object, marks);
        object->n_grown = 0;
        object->sweep_at = n + CELLS_MIN;
        if (n <= CELLS_MIN + CELLS_PER_ACCESS * object->n_accesses)
                return 0;
        return orderobject_unite(object, marks);
}

/* ---- accesses ---- */

int orderobject_collect(OrderObject *object, const OrderAccess *access, const OrderPlace *place,
                        OrderNode *node, uint64_t mark) {
        uint64_t end = access->offset + access->length;
        OrderSegment *segment = orderobject_first(object, access, place);
        int r;

        for (; segment; segment = orderobject_next(object, segment, end)) {
                r = ordernodeset_resolve(&node->predecessors, &segment->writers, mark);
                if (r < 0)
                        return r;
                if (!access->write)
                        continue;
                r = ordernodeset_resolve(&node->predecessors, &segment->readers, mark);
                if (r < 0)
                        return r;
        }
        return 0;
}

void orderobject_read(OrderObject *object, const OrderAccess *access, const OrderPlace *place,
                      OrderNode *node) {
        uint64_t end = access->offset + access->length;
        OrderSegment *segment = orderobject_first(object, access, place);

        for (; segment; segment = orderobject_next(object, segment, end)) {
                OrderNodeSet *readers = &segment->readers;

                if (readers->n > 0 && ordernodeset_at(readers)[readers->n - 1] == node)
                        continue;
                ordernodeset_push(readers, node);
                object->n_grown++;
        }
}

void orderobject_write(OrderObject *object, const OrderAccess *access, const OrderPlace *place,
                       OrderNode *node) {
        uint64_t end = access->offset + access->length;
        OrderSegment *segment = orderobject_first(object, access, place), *other;

        while ((other = orderobject_next(object, segment, end))) {
                segment->end = other->end;
                orderobject_drop_segment(object, other);
        }
        ordernodeset_clear(&segment->readers);
        ordernodeset_clear(&segment->writers);
        ordernodeset_push(&segment->writers, node);
}

/* Finds what each access is about; from here on nothing of those objects is swept. */
