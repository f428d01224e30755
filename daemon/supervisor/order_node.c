/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/order_node.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/pool.h"

#define ORDERNODE_SPARES 1024

/* ---- sets ---- */

/* Out of the set itself, or larger. */
static int ordernodeset_grow(OrderNodeSet *set, size_t room) {
        OrderNode **nodes;

        nodes = reallocarray(set->room ? set->nodes.many : NULL, room, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;

        if (!set->room)
                memcpy(nodes, set->nodes.few, set->n * sizeof(*nodes));
        set->nodes.many = nodes;
        set->room = room;
        return 0;
}

int ordernodeset_reserve(OrderNodeSet *set, size_t n_more) {
        size_t room = MAX(set->room, (size_t)ORDERNODE_FEW);

        if (set->n + n_more <= room)
                return 0;

        while (room < set->n + n_more)
                room *= 2;
        return ordernodeset_grow(set, room);
}

void ordernodeset_push(OrderNodeSet *set, OrderNode *node) {
        assert(set->n < MAX(set->room, (size_t)ORDERNODE_FEW));
        node->n_refs++;
        ordernodeset_at(set)[set->n++] = node;
}

static int ordernodeset_append(OrderNodeSet *set, OrderNode *node) {
        int r;

        r = ordernodeset_reserve(set, 1);
        if (r < 0)
                return r;

        ordernodeset_push(set, node);
        return 0;
}

void ordernodeset_clear(OrderNodeSet *set) {
        OrderNode **nodes = ordernodeset_at(set);

        for (size_t i = 0; i < set->n; i++)
                ordernode_unref(nodes[i]);
        set->n = 0;
}

void ordernodeset_finish(OrderNodeSet *set) {
        ordernodeset_clear(set);
        if (set->room)
                free(set->nodes.many);
        *set = (OrderNodeSet){0};
}

int ordernodeset_copy(OrderNodeSet *set, const OrderNodeSet *from) {
        int r;

        r = ordernodeset_reserve(set, from->n + 1); /* one more: whoever splits also adds */
        if (r < 0)
                return r;

        for (size_t i = 0; i < from->n; i++)
                ordernodeset_push(set, ordernodeset_at(from)[i]);
        return 0;
}

/* ---- nodes ---- */

static Pool ordernode_pool = POOL(sizeof(OrderNode), ORDERNODE_SPARES);

static void ordernode_free(OrderNode *node) {
        if (node->predecessors.room)
                free(node->predecessors.nodes.many);
        if (node->objects != node->few_objects)
                free(node->objects);
        pool_put(&ordernode_pool, node);
}

/* Not by recursion: jobs cancelled last to first leave long chains. */
void ordernode_unref(OrderNode *node) {
        if (--node->n_refs > 0)
                return;

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

int ordernode_new(uint64_t id, size_t n_accesses, OrderNode **ret_node) {
        OrderNode *node = pool_get(&ordernode_pool);

        if (!node)
                return -ENOMEM;

        *node = (OrderNode){.id = id, .n_refs = 1, .live = true, .n_objects = n_accesses};
        node->objects = node->few_objects;
        if (n_accesses > ORDERNODE_ACCESSES)
                node->objects = calloc(n_accesses, sizeof(*node->objects));
        if (!node->objects) {
                pool_put(&ordernode_pool, node);
                return -ENOMEM;
        }

        *ret_node = node;
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

int ordernodeset_resolve(OrderNodeSet *to, const OrderNodeSet *from, uint64_t mark) {
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

int ordernode_resolve(OrderNode *node, uint64_t *marks) {
        OrderNodeSet set = {0};
        int r;

        r = ordernodeset_resolve(&set, &node->predecessors, ++*marks);
        if (r < 0) {
                ordernodeset_finish(&set);
                return r;
        }

        ordernodeset_finish(&node->predecessors);
        node->predecessors = set;
        return 0;
}

/* Looked at from the end; most of the time one look is enough. */
bool ordernode_is_waiting(OrderNode *node, uint64_t *marks) {
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

void ordernodeset_trim(OrderNodeSet *set) {
        OrderNode **nodes = ordernodeset_at(set);

        while (set->n > 0 && !nodes[set->n - 1]->live && nodes[set->n - 1]->predecessors.n == 0)
                ordernode_unref(nodes[--set->n]);
}
