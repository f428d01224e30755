/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_ORDER_NODE_H
#define GPUQ_ORDER_NODE_H

/*
 * Order node
 *
 * A job as Order sees it: what it waits for, and who still names it. A job that
 * ended before its predecessors did is not spent: it stands for them wherever it
 * is named, so that nobody overtakes them through the gap it left.
 *
 * @marks is Order's counter of walks over nodes; each walk takes the next number.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv/tree.h>

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
        size_t n;
        size_t room; /* 0: few */
} OrderNodeSet;

#define ORDERNODE_ACCESSES 8u /* a node of more needs memory for them */

struct OrderNode {
        uint64_t id;
        RB_ENTRY(OrderNode) entry; /* order->nodes, while live */
        size_t n_refs;
        bool live;
        OrderNodeSet predecessors;
        OrderObject **objects; /* one an access, while live; NULL for an empty one */
        OrderObject *few_objects[ORDERNODE_ACCESSES];
        size_t n_objects;
        uint64_t mark;   /* the walk that saw it last */
        OrderNode *next; /* of those to be walked or freed */
};

/** ordernode_new() - live, of one reference. Return: 0, or -ENOMEM. */
int ordernode_new(uint64_t id, size_t n_accesses, OrderNode **ret_node);
/** ordernode_unref() - gone with the last reference. */
void ordernode_unref(OrderNode *node);
DEFINE_CLEANUP(OrderNode, ordernode_unref)

/**
 * ordernode_resolve() - make its predecessors live jobs only
 *
 * Return: 0, or -ENOMEM: what stands there is then still true.
 */
int ordernode_resolve(OrderNode *node, uint64_t *marks);
/** ordernode_is_waiting() - a predecessor of it is left. */
bool ordernode_is_waiting(OrderNode *node, uint64_t *marks);

/** ordernodeset_at() - all its nodes, one after the other. */
static inline OrderNode **ordernodeset_at(const OrderNodeSet *set) {
        return set->room ? set->nodes.many : (OrderNode **)set->nodes.few;
}
/** ordernodeset_reserve() - room for @n_more. Return: 0, or -ENOMEM. */
int ordernodeset_reserve(OrderNodeSet *set, size_t n_more);
/** ordernodeset_push() - needs reserved room. */
void ordernodeset_push(OrderNodeSet *set, OrderNode *node);
/** ordernodeset_copy() - append all of @from, with room for one more. Return: 0, or -ENOMEM. */
int ordernodeset_copy(OrderNodeSet *set, const OrderNodeSet *from);
/** ordernodeset_resolve() - append the live ones of @from, and those that ended ones stand for, each once a @mark. Return: 0, or -ENOMEM. */
int ordernodeset_resolve(OrderNodeSet *set, const OrderNodeSet *from, uint64_t mark);
/** ordernodeset_drop_spent() - forget the ended ones that wait for nobody. */
void ordernodeset_drop_spent(OrderNodeSet *set, uint64_t *marks);
/** ordernodeset_trim() - the same for the last of them, as long as one look tells. */
void ordernodeset_trim(OrderNodeSet *set);
/** ordernodeset_clear() - empty, its room kept. */
void ordernodeset_clear(OrderNodeSet *set);
/** ordernodeset_finish() - empty, its memory freed. */
void ordernodeset_finish(OrderNodeSet *set);

#endif
