/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include "order_node.h"
#include "order_object.h"
#include "order_ranges.h"

#define IDLE_MAX 4 /* objects */

RB_HEAD(OrderObjectTree, OrderObject);
TAILQ_HEAD(OrderObjectList, OrderObject);
LIST_HEAD(OrderNodeList, OrderNode);

struct Order {
        struct OrderNodeList nodes; /* live */
        struct OrderObjectTree objects;
        struct OrderObjectList idle; /* objects that no live job uses; the most recent one last */
        unsigned n_idle;
        bool has_gaps; /* a job ended before its predecessors, some of which live */
        size_t n_nodes;
        uint64_t marks;
};

static int orderobject_compare(OrderObject *a, OrderObject *b) {
        return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_STATIC(OrderObjectTree, OrderObject, entry, orderobject_compare)

/* ---- adding ---- */

static void order_wake_object(Order *order, OrderObject *object) {
        if (object->n_accesses > 0)
                return;
        TAILQ_REMOVE(&order->idle, object, idle_link);
        order->n_idle--;
}

/* The node's job uses the object from here on. */
static int order_take_object(Order *order, uint64_t id, OrderObject **ret_object) {
        OrderObject *object, key = {.id = id};
        int r;

        object = RB_FIND(OrderObjectTree, &order->objects, &key);
        if (object) {
                order_wake_object(order, object);
        } else {
                r = orderobject_new(id, &object);
                if (r < 0)
                        return r;
                RB_INSERT(OrderObjectTree, &order->objects, object);
        }

        *ret_object = object;
        return 0;
}

static void order_drop_object(Order *order, OrderObject *object) {
        TAILQ_REMOVE(&order->idle, object, idle_link);
        order->n_idle--;
        RB_REMOVE(OrderObjectTree, &order->objects, object);
        orderobject_free(object);
}

/*
 * An object orders nothing when no live job uses it and none of its ended jobs stands for others
 * (has_gaps). It is kept because the next job is likely to use the same slices.
 */
static void order_release_object(Order *order, OrderObject *object) {
        TAILQ_INSERT_TAIL(&order->idle, object, idle_link);
        if (++order->n_idle > IDLE_MAX)
                order_drop_object(order, TAILQ_FIRST(&order->idle));
        if (order->has_gaps || !orderobject_is_small(object))
                order_drop_object(order, object);
}

static int order_use(Order *order, OrderNode *node, uint64_t id, OrderObject **ret_object) {
        OrderUse *use = node->n_uses > 0 ? &node->uses[node->n_uses - 1] : NULL;
        OrderObject *object;
        int r;

        if (!use || use->object->id != id) {
                r = ordernode_reserve_use(node);
                if (r < 0)
                        return r;
                r = order_take_object(order, id, &object);
                if (r < 0)
                        return r;
                use = &node->uses[node->n_uses++];
                *use = (OrderUse){.object = object};
        }

        use->n++;
        use->object->n_accesses++;
        *ret_object = use->object;
        return 0;
}

static int order_note(Order *order, OrderNode *node, const OrderAccess *accesses,
                      size_t n_accesses) {
        OrderObject *object;
        int r;

        node->mark = ++order->marks; /* so that it does not follow itself */
        for (size_t i = 0; i < n_accesses; i++) {
                if (accesses[i].length == 0)
                        continue;
                r = order_use(order, node, accesses[i].object, &object);
                if (r < 0)
                        return r;
                r = orderobject_add(object, &accesses[i], node);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void order_leave(Order *order, OrderNode *node) {
        for (size_t i = 0; i < node->n_uses; i++) {
                OrderUse *use = &node->uses[i];

                use->object->n_accesses -= use->n;
                if (use->object->n_accesses == 0)
                        order_release_object(order, use->object);
        }
        node->n_uses = 0;
}

/* A job whose accesses were noted in part counts as cancelled at once. */
int order_add(Order *order, uint64_t job, OrderAccess *accesses, size_t n_accesses,
              OrderNode **ret_node) {
        OrderNode *node;
        int r;

        if (n_accesses > ORDERRANGES_FEW)
                n_accesses = orderranges_merge(accesses, n_accesses);

        r = ordernode_new(job, &node);
        if (r < 0)
                return r;

        LIST_INSERT_HEAD(&order->nodes, node, link);
        order->n_nodes++;
        r = order_note(order, node, accesses, n_accesses);
        if (r < 0) {
                order_remove(order, node);
                return r;
        }

        for (size_t i = 0; i < node->n_uses; i++)
                orderobject_tidy(node->uses[i].object, &order->marks);
        *ret_node = node;
        return 0;
}

/* ---- life and queries ---- */

int order_new(Order **ret_order) {
        Order *order = calloc(1, sizeof(*order));

        if (!order)
                return -ENOMEM;

        TAILQ_INIT(&order->idle);
        *ret_order = order;
        return 0;
}

Order *order_free(Order *order) {
        OrderObject *object;
        OrderNode *node;

        if (!order)
                return NULL;

        while ((object = RB_MIN(OrderObjectTree, &order->objects))) {
                RB_REMOVE(OrderObjectTree, &order->objects, object);
                orderobject_free(object);
        }
        while ((node = LIST_FIRST(&order->nodes))) {
                LIST_REMOVE(node, link);
                ordernode_unref(node);
        }
        free(order);
        return NULL;
}

size_t order_sweep_freed(size_t n_max) {
        return orderobject_sweep_freed(n_max);
}

bool order_has_freed(void) {
        return orderobject_has_freed();
}

void order_remove(Order *order, OrderNode *node) {
        bool is_gap;

        if (!node)
                return;

        LIST_REMOVE(node, link);
        order->n_nodes--;
        node->live = false;
        is_gap = ordernode_is_waiting(node, &order->marks);
        order->has_gaps |= is_gap;
        order_leave(order, node);
        if (!is_gap)
                ordernodeset_finish(&node->predecessors);
        ordernode_unref(node);
        if (order->n_nodes == 0)
                order->has_gaps = false;
}

bool order_is_free(Order *order, OrderNode *node) {
        return !ordernode_is_waiting(node, &order->marks);
}

int order_predecessors(Order *order, OrderNode *node, uint64_t **ret_predecessors, size_t *ret_n) {
        _cleanup_(freep) uint64_t *ids = NULL;
        const OrderNodeSet *set = &node->predecessors;
        int r;

        r = ordernode_resolve(node, &order->marks);
        if (r < 0)
                return r;

        if (set->n > 0) {
                ids = calloc(set->n, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < set->n; i++)
                ids[i] = ordernodeset_at(set)[i]->id;

        *ret_predecessors = TAKE_PTR(ids);
        *ret_n = set->n;
        return 0;
}

size_t order_n_jobs(const Order *order) {
        return order->n_nodes;
}
