/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/order_node.h"

#include <assert.h>
#include <errno.h>

/* ---- sets ---- */

int ordernodeset_reserve(OrderNodeSet *set, size_t n_more) {
        size_t size = MAX(set->size, (size_t)4);
        OrderNode **nodes;

        if (set->n + n_more <= set->size)
                return 0;

        while (size < set->n + n_more)
                size *= 2;
        nodes = reallocarray(set->nodes, size, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;

        set->nodes = nodes;
        set->size = size;
        return 0;
}

void ordernodeset_push(OrderNodeSet *set, OrderNode *node) {
        assert(set->n < set->size);
        node->n_refs++;
        set->nodes[set->n++] = node;
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
        for (size_t i = 0; i < set->n; i++)
                ordernode_unref(set->nodes[i]);
        set->n = 0;
}

void ordernodeset_finish(OrderNodeSet *set) {
        ordernodeset_clear(set);
        free(set->nodes);
        *set = (OrderNodeSet){0};
}

int ordernodeset_copy(OrderNodeSet *set, const OrderNodeSet *from) {
        int r;

        r = ordernodeset_reserve(set, from->n + 1); /* one more: whoever splits also adds */
        if (r < 0)
                return r;

        for (size_t i = 0; i < from->n; i++)
                ordernodeset_push(set, from->nodes[i]);
        return 0;
}

/* ---- nodes ---- */

/* Not by recursion: jobs cancelled last to first leave long chains. */
void ordernode_unref(OrderNode *node) {
        if (--node->n_refs > 0)
                return;

        node->next = NULL;
        while (node) {
                OrderNode *dead = node;

                node = dead->next;
                for (size_t i = 0; i < dead->predecessors.n; i++) {
                        OrderNode *predecessor = dead->predecessors.nodes[i];

                        if (--predecessor->n_refs > 0)
                                continue;
                        predecessor->next = node;
                        node = predecessor;
                }
                free(dead->predecessors.nodes);
                free(dead->objects);
                free(dead);
        }
}

int ordernode_new(uint64_t id, size_t n_accesses, OrderNode **ret_node) {
        _cleanup_(ordernode_unrefp) OrderNode *node = calloc(1, sizeof(*node));

        if (!node)
                return -ENOMEM;

        node->id = id;
        node->n_refs = 1;
        node->live = true;
        node->n_objects = n_accesses;
        node->objects = calloc(MAX(n_accesses, (size_t)1), sizeof(*node->objects));
        if (!node->objects)
                return -ENOMEM;

        *ret_node = TAKE_PTR(node);
        return 0;
}

static OrderNode *walk_push(OrderNode *list, const OrderNodeSet *set, uint64_t mark) {
        for (size_t i = 0; i < set->n; i++) {
                OrderNode *node = set->nodes[i];

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
                OrderNode *last = set->nodes[set->n - 1];

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
        size_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                if (ordernode_is_spent(set->nodes[i], marks))
                        ordernode_unref(set->nodes[i]);
                else
                        set->nodes[n++] = set->nodes[i];
        set->n = n;
}
