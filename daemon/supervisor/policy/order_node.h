/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_NODE_H
#define GPUQ_SUPERVISOR_ORDER_NODE_H

/*
 * Order node
 *
 * A job as Order sees it: its predecessors, and its references. A job that ended before its
 * predecessors still stands for them wherever it is named, so that no job overtakes them through
 * the gap it left. A job that ended after them is spent.
 *
 * @marks is Order's counter of walks over nodes; each walk takes the next number.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"
#include "util/macro.h"

typedef struct OrderNode OrderNode;
typedef struct OrderObject OrderObject;

#define ORDERNODE_FEW 2u

/* Usually few nodes, which need no allocation; may be moved by assignment. */
typedef struct OrderNodeSet {
        union {
                OrderNode *few[ORDERNODE_FEW];
                OrderNode **many; /* used when the set has more */
        } nodes;                  /* each holds a reference */
        uint32_t n;
        uint32_t room; /* capacity of many; 0: few is used */
} OrderNodeSet;

/* Consecutive accesses of one job to one object. */
typedef struct OrderUse {
        OrderObject *object;
        size_t n;
} OrderUse;

#define ORDERNODE_USES 2u /* a power of two; a node of more needs memory for them */

struct OrderNode {
        uint64_t id;
        LIST_ENTRY(OrderNode) link; /* order->nodes, while live */
        size_t n_refs;
        uint64_t mark;   /* the latest walk that visited it */
        OrderNode *next; /* link of a list to be walked or freed */
        OrderNodeSet predecessors;
        OrderUse *uses; /* while live */
        OrderUse few_uses[ORDERNODE_USES];
        uint32_t n_uses;
        bool live;
};

/** ordernode_new() - a live node with one reference. Return: 0, or -ENOMEM. */
int ordernode_new(uint64_t id, OrderNode **ret_node);
/** ordernode_destroy() - the slow path of ordernode_unref(): the last reference is gone. */
void ordernode_destroy(OrderNode *node);
/** ordernode_unref() - the last reference frees the node. */
static inline void ordernode_unref(OrderNode *node) {
        if (--node->n_refs == 0)
                ordernode_destroy(node);
}

/** ordernode_reserve_use() - space for one more use. Return: 0, or -ENOMEM. */
int ordernode_reserve_use(OrderNode *node);

/**
 * ordernode_resolve() - replace its predecessors by live jobs only
 *
 * Return: 0, or -ENOMEM: the old predecessors remain, and are still true.
 */
int ordernode_resolve(OrderNode *node, uint64_t *marks);
/** ordernode_is_behind() - the slow path of ordernode_is_waiting(): the node has had predecessors. */
bool ordernode_is_behind(OrderNode *node, uint64_t *marks);
/** ordernode_is_waiting() - a predecessor is left. */
static inline bool ordernode_is_waiting(OrderNode *node, uint64_t *marks) {
        return node->predecessors.n > 0 && ordernode_is_behind(node, marks);
}

/** ordernodeset_at() - the array of its nodes. */
static inline OrderNode **ordernodeset_at(const OrderNodeSet *set) {
        return set->room ? set->nodes.many : (OrderNode **)set->nodes.few;
}
/** ordernodeset_last() - the last node; NULL: the set is empty. */
static inline OrderNode *ordernodeset_last(const OrderNodeSet *set) {
        return set->n > 0 ? ordernodeset_at(set)[set->n - 1] : NULL;
}
/** ordernodeset_grow() - make space for @n_more. Return: 0, or -ENOMEM. */
int ordernodeset_grow(OrderNodeSet *set, size_t n_more);
/** ordernodeset_append() - Return: 0, or -ENOMEM; 0 with an empty set. */
static inline int ordernodeset_append(OrderNodeSet *set, OrderNode *node) {
        if (set->n >= MAX(set->room, ORDERNODE_FEW) && ordernodeset_grow(set, 1) < 0)
                return -ENOMEM;

        node->n_refs++;
        ordernodeset_at(set)[set->n++] = node;
        return 0;
}
/** ordernodeset_copy() - append all of @from. Return: 0, or -ENOMEM. */
int ordernodeset_copy(OrderNodeSet *set, const OrderNodeSet *from);
/** ordernodeset_resolve_some() - the slow path of ordernodeset_resolve(), for a set that is not empty. */
int ordernodeset_resolve_some(OrderNodeSet *set, const OrderNodeSet *from, uint64_t mark);
/**
 * ordernodeset_resolve() - append the live nodes of @from, and the live nodes that ended ones stand
 * for, each once per @mark
 *
 * Return: 0, or -ENOMEM.
 */
static inline int ordernodeset_resolve(OrderNodeSet *set, const OrderNodeSet *from, uint64_t mark) {
        return from->n > 0 ? ordernodeset_resolve_some(set, from, mark) : 0;
}
/** ordernodeset_drop_spent() - drop ended nodes without predecessors. */
void ordernodeset_drop_spent(OrderNodeSet *set, uint64_t *marks);
/** ordernodeset_trim() - the same, from the end of the set only, and stopping at the first node that must stay. */
static inline void ordernodeset_trim(OrderNodeSet *set) {
        OrderNode *last;

        while ((last = ordernodeset_last(set)) && !last->live && last->predecessors.n == 0) {
                set->n--;
                ordernode_unref(last);
        }
}
/** ordernodeset_clear() - empty the set and keep its memory. */
static inline void ordernodeset_clear(OrderNodeSet *set) {
        while (set->n > 0)
                ordernode_unref(ordernodeset_at(set)[--set->n]);
}
/** ordernodeset_finish() - empty the set and free its memory. */
void ordernodeset_finish(OrderNodeSet *set);

#endif
