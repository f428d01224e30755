/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_OBJECT_H
#define GPUQ_SUPERVISOR_ORDER_OBJECT_H

/*
 * Order object
 *
 * The history of one object: disjoint segments of bytes, each with its last writer and the readers
 * since then. A new access first splits segments at its bounds, which changes no history. Then the
 * jobs named in its segments become its predecessors.
 *
 * Most accesses are to a slice that was used before: that is one segment, next to the segment of
 * the preceding access. An access that meets many segments and jobs takes over their place, so each
 * access costs a constant number of steps on average, whatever the order of the accesses.
 */

#include <stddef.h>
#include <stdint.h>

#include <uv/tree.h>

#include "order_access.h"
#include "order_node.h"
#include "util/list.h"

#define ORDEROBJECT_WIDE 32u /* cells that one access may meet before it takes them over */

typedef struct OrderSegment OrderSegment;

RB_HEAD(OrderSegmentTree, OrderSegment);

struct OrderObject {
        uint64_t id;
        RB_ENTRY(OrderObject) entry;        /* order->objects */
        TAILQ_ENTRY(OrderObject) idle_link; /* order->idle, when no live job uses it */
        struct OrderSegmentTree segments;
        OrderSegment *recent; /* the last access's segment; NULL: none, or it was freed */
        size_t n_segments;
        size_t n_accesses; /* of live jobs; the owner counts them */
        size_t n_cells;    /* segments, and the jobs that they name */
        size_t sweep_at;   /* the number of cells that triggers a sweep */
        size_t n_steps;    /* cells visited so far, for tests */
};

/** orderobject_new() - an object without history. Return: 0, or -ENOMEM. */
int orderobject_new(uint64_t id, OrderObject **ret_object);
/** orderobject_free() - a large object is freed in parts, see orderobject_sweep_freed(); NULL is fine. Return: NULL. */
OrderObject *orderobject_free(OrderObject *object);
/** orderobject_sweep_freed() - free segments of freed objects. Return: how many, at most @n_max. */
size_t orderobject_sweep_freed(size_t n_max);
/** orderobject_has_freed() - some are left. */
bool orderobject_has_freed(void);

/** orderobject_is_small() - it has few segments, and few ended jobs in them. */
bool orderobject_is_small(const OrderObject *object);
/** orderobject_tidy() - drop ended jobs when due; must not be called between accesses of one job. */
void orderobject_tidy(OrderObject *object, uint64_t *marks);
/**
 * orderobject_add() - note an access of this node, and add the jobs it must follow to its predecessors
 *
 * The node has a mark of its own, which its predecessors so far carry too.
 *
 * Return: 0, or -ENOMEM: part of the access is noted.
 */
int orderobject_add(OrderObject *object, const OrderAccess *access, OrderNode *node);

#endif
