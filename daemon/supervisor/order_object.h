/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_ORDER_OBJECT_H
#define GPUQ_ORDER_OBJECT_H

/*
 * Order object
 *
 * Who wrote and read which bytes of one object last: disjoint segments, each
 * with its last writer and the readers since then. An access is first covered,
 * which may fail and changes no history, then looked at, then noted.
 *
 * Most accesses are to a slice that was used before: one segment, which cover finds
 * beside the one of the access before it, and which the other two need not find again.
 */

#include <stddef.h>
#include <stdint.h>

#include <uv/tree.h>

#include "supervisor/list.h"
#include "supervisor/order.h"
#include "supervisor/order_node.h"

typedef struct OrderSegment OrderSegment;

RB_HEAD(OrderSegmentTree, OrderSegment);

struct OrderObject {
        uint64_t id;
        RB_ENTRY(OrderObject) entry;        /* order->objects */
        TAILQ_ENTRY(OrderObject) idle_link; /* order->idle, when no live job uses it */
        struct OrderSegmentTree segments;
        OrderSegment *recent; /* that the last access was found in; NULL: none, or it is gone */
        size_t n_segments;
        size_t n_cuts; /* how often segments were split or united: what was found may not hold then */
        size_t n_accesses; /* of live jobs; its owner counts */
        size_t n_grown;    /* segments and cells made since the last sweep */
        size_t sweep_at;   /* how many of them ask for the next */
};

/* Where cover found an access. */
typedef struct OrderPlace {
        OrderSegment *segment; /* this one is all of it; NULL: it has to be looked for */
        size_t n_cuts;         /* of the object then */
} OrderPlace;

/** orderobject_new() - nobody touched it. Return: 0, or -ENOMEM. */
int orderobject_new(uint64_t id, OrderObject **ret_object);
/** orderobject_free() - NULL is fine. Return: NULL. */
OrderObject *orderobject_free(OrderObject *object);

/** orderobject_is_small() - few segments, and few jobs that have ended in them. */
bool orderobject_is_small(const OrderObject *object);
/** orderobject_tidy() - forget ended jobs, when it is time; not between cover and note. Return: 0, or -ENOMEM. */
int orderobject_tidy(OrderObject *object, uint64_t *marks);
/** orderobject_cover() - make segments that end where the access does. Return: 0, or -ENOMEM. */
int orderobject_cover(OrderObject *object, const OrderAccess *access, OrderPlace *ret_place);
/** orderobject_collect() - add those that it has to follow to the node's predecessors. Return: 0, or -ENOMEM. */
int orderobject_collect(OrderObject *object, const OrderAccess *access, const OrderPlace *place,
                        OrderNode *node, uint64_t mark);
/** orderobject_read() - note the node as a reader. */
void orderobject_read(OrderObject *object, const OrderAccess *access, const OrderPlace *place,
                      OrderNode *node);
/** orderobject_write() - note it as the last writer; what it wrote beside that becomes one segment with it. */
void orderobject_write(OrderObject *object, const OrderAccess *access, const OrderPlace *place,
                       OrderNode *node);

#endif
