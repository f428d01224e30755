/* SPDX-License-Identifier: Apache-2.0 */
#include "order_node.h"

#include <stdlib.h>
#include <string.h>

#include "util/pool.h"

#define ORDERNODE_SPARES 1024

/* ---- sets ---- */

/* Moves the nodes out of the set itself, or into a larger array. */
int ordernodeset_grow(OrderNodeSet *set, size_t n_more) {
        size_t room = MAX(set->room, ORDERNODE_FEW);
        OrderNode **nodes;

        while (room < set->n + n_more)
                room *= 2;
        if (room > UINT32_MAX)
                return -ENOMEM;
        nodes = reallocarray(set->room ? set->nodes.many : NULL, room, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;

        if (!set->room)
                memcpy(nodes, set->nodes.few, set->n * sizeof(*nodes));
        set->nodes.many = nodes;
        set->room = (uint32_t)room;
        return 0;
}

void ordernodeset_finish(OrderNodeSet *set) {
        ordernodeset_clear(set);
        if (set->room)
                free(set->nodes.many);
        *set = (OrderNodeSet){0};
}

int ordernodeset_copy(OrderNodeSet *set, const OrderNodeSet *from) {
        int r;

        for (size_t i = 0; i < from->n; i++) {
                r = ordernodeset_append(set, ordernodeset_at(from)[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- nodes ---- */

static Pool ordernode_pool = POOL(sizeof(OrderNode), ORDERNODE_SPARES);

static void ordernode_free(OrderNode *node) {
        if (node->predecessors.room)
                free(node->predecessors.nodes.many);
        if (node->uses != node->few_uses)
                free(node->uses);
        pool_put(&ordernode_pool, node);
}

/* Not by recursion: jobs cancelled from last to first leave long chains. */
void ordernode_destroy(OrderNode *node) {
        node->next = NULL;
        while (node) {
                OrderNode *dead = node;

                node = dead->next;
                for (size_t i = 0; i < dead->predecessors.n; i++) {
                        OrderNode *predecessor = ordernodeset_at(&dead->predecessors)[i];

                        if (--predecessor->n_refs > 0)
                                continue;
                        predecessor->next = node;
                        node = predecessor;
                }
                ordernode_free(dead);
        }
}

int ordernode_new(uint64_t id, OrderNode **ret_node) {
        OrderNode *node = pool_get(&ordernode_pool);

        if (!node)
                return -ENOMEM;

        *node = (OrderNode){.id = id, .n_refs = 1, .live = true};
        node->uses = node->few_uses;
        *ret_node = node;
        return 0;
}

/* The capacity doubles, so the set is full when its number of nodes is a power of two. */
int ordernode_reserve_use(OrderNode *node) {
        bool is_few = node->uses == node->few_uses;
        uint32_t n = node->n_uses;
        OrderUse *uses;

        if (n < ORDERNODE_USES || (n & (n - 1)) != 0)
                return 0;

        uses = reallocarray(is_few ? NULL : node->uses, 2 * (size_t)n, sizeof(*uses));
        if (!uses)
                return -ENOMEM;

        if (is_few)
                memcpy(uses, node->few_uses, sizeof(node->few_uses));
        node->uses = uses;
        return 0;
}

static OrderNode *walk_push(OrderNode *list, const OrderNodeSet *set, uint64_t mark) {
        for (size_t i = 0; i < set->n; i++) {
                OrderNode *node = ordernodeset_at(set)[i];

                if (node->mark == mark)
                        continue;
                node->mark = mark;
                node->next = list;
                list = node;
        }
        return list;
}

int ordernodeset_resolve_some(OrderNodeSet *to, const OrderNodeSet *from, uint64_t mark) {
        OrderNode *list = walk_push(NULL, from, mark);
        int r;

        while (list) {
                OrderNode *node = list;

                list = node->next;
                if (!node->live) {
                        list = walk_push(list, &node->predecessors, mark);
                        continue;
                }
                r = ordernodeset_append(to, node);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool ordernodeset_is_live(const OrderNodeSet *set) {
        for (size_t i = 0; i < set->n; i++)
                if (!ordernodeset_at(set)[i]->live)
                        return false;
        return true;
}

int ordernode_resolve(OrderNode *node, uint64_t *marks) {
        OrderNodeSet set = {0};
        int r;

        if (ordernodeset_is_live(&node->predecessors))
                return 0;

        r = ordernodeset_resolve(&set, &node->predecessors, ++*marks);
        if (r < 0) {
                ordernodeset_finish(&set);
                return r;
        }

        ordernodeset_finish(&node->predecessors);
        node->predecessors = set;
        return 0;
}

/* Walks from the end; usually the first node decides. */
bool ordernode_is_behind(OrderNode *node, uint64_t *marks) {
        OrderNodeSet *set = &node->predecessors;

        while (set->n > 0) {
                OrderNode *last = ordernodeset_at(set)[set->n - 1];

                if (last->live)
                        return true;
                if (last->predecessors.n > 0)
                        return ordernode_resolve(node, marks) < 0 || set->n > 0;
                set->n--;
                ordernode_unref(last);
        }
        return false;
}

static bool ordernode_is_spent(OrderNode *node, uint64_t *marks) {
        return !node->live && !ordernode_is_waiting(node, marks);
}

void ordernodeset_drop_spent(OrderNodeSet *set, uint64_t *marks) {
        OrderNode **nodes = ordernodeset_at(set);
        size_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                if (ordernode_is_spent(nodes[i], marks))
                        ordernode_unref(nodes[i]);
                else
                        nodes[n++] = nodes[i];
        set->n = n;
}
