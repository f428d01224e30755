/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_NODE_H
#define GPUQ_SUPERVISOR_ORDER_NODE_H

/*
 * Order node
 *
 * A job as Order sees it: what it waits for, and who still names it. A job that
 * ended before its predecessors did is not spent: it stands for them wherever it
 * is named, so that nobody overtakes them through the gap it left.
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

/* Few as a rule, and then without memory of its own; may be moved by assignment. */
typedef struct OrderNodeSet {
        union {
                OrderNode *few[ORDERNODE_FEW];
                OrderNode **many; /* room for more than that */
        } nodes;                  /* each holds a reference */
        uint32_t n;
        uint32_t room; /* 0: few */
} OrderNodeSet;

/* Accesses of one job to one object, in a row. */
typedef struct OrderUse {
        OrderObject *object;
        size_t n;
} OrderUse;

#define ORDERNODE_USES 2u /* a power of two; a node of more needs memory for them */

struct OrderNode {
        uint64_t id;
        LIST_ENTRY(OrderNode) link; /* order->nodes, while live */
        size_t n_refs;
        uint64_t mark;   /* the walk that saw it last */
        OrderNode *next; /* of those to be walked or freed */
        OrderNodeSet predecessors;
        OrderUse *uses; /* while live */
        OrderUse few_uses[ORDERNODE_USES];
        uint32_t n_uses;
        bool live;
};

/** ordernode_new() - live, of one reference. Return: 0, or -ENOMEM. */
int ordernode_new(uint64_t id, OrderNode **ret_node);
/** ordernode_destroy() - what ordernode_unref() does about the last reference. */
void ordernode_destroy(OrderNode *node);
/** ordernode_unref() - gone with the last reference. */
static inline void ordernode_unref(OrderNode *node) {
        if (--node->n_refs == 0)
                ordernode_destroy(node);
}

/** ordernode_reserve_use() - a place behind those it has. Return: 0, or -ENOMEM. */
int ordernode_reserve_use(OrderNode *node);

/**
 * ordernode_resolve() - make its predecessors live jobs only
 *
 * Return: 0, or -ENOMEM: what stands there is then still true.
 */
int ordernode_resolve(OrderNode *node, uint64_t *marks);
/** ordernode_is_behind() - what ordernode_is_waiting() does about one that had predecessors. */
bool ordernode_is_behind(OrderNode *node, uint64_t *marks);
/** ordernode_is_waiting() - a predecessor of it is left. */
static inline bool ordernode_is_waiting(OrderNode *node, uint64_t *marks) {
        return node->predecessors.n > 0 && ordernode_is_behind(node, marks);
}

/** ordernodeset_at() - all its nodes, one after the other. */
static inline OrderNode **ordernodeset_at(const OrderNodeSet *set) {
        return set->room ? set->nodes.many : (OrderNode **)set->nodes.few;
}
/** ordernodeset_last() - NULL: there is none. */
static inline OrderNode *ordernodeset_last(const OrderNodeSet *set) {
        return set->n > 0 ? ordernodeset_at(set)[set->n - 1] : NULL;
}
/** ordernodeset_grow() - room for @n_more. Return: 0, or -ENOMEM. */
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
/** ordernodeset_resolve_some() - what ordernodeset_resolve() does about those there are. */
int ordernodeset_resolve_some(OrderNodeSet *set, const OrderNodeSet *from, uint64_t mark);
/** ordernodeset_resolve() - append the live ones of @from, and those that ended ones stand for, each once a @mark. Return: 0, or -ENOMEM. */
static inline int ordernodeset_resolve(OrderNodeSet *set, const OrderNodeSet *from, uint64_t mark) {
        return from->n > 0 ? ordernodeset_resolve_some(set, from, mark) : 0;
}
/** ordernodeset_drop_spent() - forget the ended ones that wait for nobody. */
void ordernodeset_drop_spent(OrderNodeSet *set, uint64_t *marks);
/** ordernodeset_trim() - the same for the last of them, as long as one look tells. */
static inline void ordernodeset_trim(OrderNodeSet *set) {
        OrderNode *last;

        while ((last = ordernodeset_last(set)) && !last->live && last->predecessors.n == 0) {
                set->n--;
                ordernode_unref(last);
        }
}
/** ordernodeset_clear() - empty, its room kept. */
static inline void ordernodeset_clear(OrderNodeSet *set) {
        while (set->n > 0)
                ordernode_unref(ordernodeset_at(set)[--set->n]);
}
/** ordernodeset_finish() - empty, its memory freed. */
void ordernodeset_finish(OrderNodeSet *set);

#endif
