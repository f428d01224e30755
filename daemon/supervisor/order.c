/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/order.h"

#include "supervisor/order_node.h"
#include "supervisor/order_object.h"

#define IDLE_MAX 4 /* objects */

RB_HEAD(OrderObjectTree, OrderObject);
TAILQ_HEAD(OrderObjectList, OrderObject);
RB_HEAD(OrderNodeTree, OrderNode);

struct Order {
        struct OrderNodeTree nodes; /* live */
        struct OrderObjectTree objects;
        struct OrderObjectList idle; /* of them, those that no live job uses; the last one last */
        unsigned n_idle;
        bool has_gaps; /* a job ended before those that it had to run after, some of which live */
        OrderPlace *places; /* of the job that is added, one an access */
        size_t n_places;
        uint64_t last; /* the highest id so far */
        size_t n_nodes;
        uint64_t marks;
};

static int orderobject_compare(OrderObject *a, OrderObject *b) {
        return (a->id > b->id) - (a->id < b->id);
}

static int ordernode_compare(OrderNode *a, OrderNode *b) {
        return (a->id > b->id) - (a->id < b->id);
}

RB_GENERATE_STATIC(OrderObjectTree, OrderObject, entry, orderobject_compare)
RB_GENERATE_STATIC(OrderNodeTree, OrderNode, entry, ordernode_compare)

/* ---- adding ---- */

static void order_wake_object(Order *order, OrderObject *object) {
        if (object->n_accesses > 0)
                return;
        TAILQ_REMOVE(&order->idle, object, idle_link);
        order->n_idle--;
}

/* Its job counts as one that uses it from here on. */
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

        object->n_accesses++;
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
 * It orders nothing when no live job uses it and none that did stands for others (has_gaps),
 * but whoever comes next is likely to use the same slices.
 */
static void order_release_object(Order *order, OrderObject *object) {
        if (--object->n_accesses > 0)
                return;

        TAILQ_INSERT_TAIL(&order->idle, object, idle_link);
        if (++order->n_idle > IDLE_MAX)
                order_drop_object(order, TAILQ_FIRST(&order->idle));
        if (order->has_gaps || !orderobject_is_small(object))
                order_drop_object(order, object);
}

/* Finds what each access is about; from here on nothing of those objects is swept. */
static int order_enter(Order *order, OrderNode *node, const OrderAccess *accesses,
                       size_t n_accesses) {
        int r;

        for (size_t i = 0; i < n_accesses; i++) {
                if (accesses[i].length == 0)
                        continue;
                r = order_take_object(order, accesses[i].object, &node->objects[i]);
                if (r < 0)
                        return r;
                r = orderobject_tidy(node->objects[i], &order->marks);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int order_reserve_places(Order *order, size_t n) {
        OrderPlace *places;

        if (n <= order->n_places)
                return 0;

        places = reallocarray(order->places, n, sizeof(*places));
        if (!places)
                return -ENOMEM;
        order->places = places;
        order->n_places = n;
        return 0;
}

static int order_prepare(Order *order, OrderNode *node, const OrderAccess *accesses,
                         size_t n_accesses) {
        uint64_t mark = ++order->marks;
        int r;

        for (size_t i = 0; i < n_accesses; i++) {
                if (!node->objects[i])
                        continue;
                r = orderobject_cover(node->objects[i], &accesses[i], &order->places[i]);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < n_accesses; i++) {
                if (!node->objects[i])
                        continue;
                r = orderobject_collect(node->objects[i], &accesses[i], &order->places[i], node,
                                        mark);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads first: a write unites segments and so leaves no reader of its own job in them. */
static void node_commit(OrderNode *node, const OrderAccess *accesses, const OrderPlace *places,
                        size_t n_accesses) {
        bool cautious = node->predecessors.n > ORDER_DIRECT_MAX;

        for (size_t i = 0; i < n_accesses; i++)
                if (node->objects[i] && !accesses[i].write && !cautious)
                        orderobject_read(node->objects[i], &accesses[i], &places[i], node);
        for (size_t i = 0; i < n_accesses; i++)
                if (node->objects[i] && (accesses[i].write || cautious))
                        orderobject_write(node->objects[i], &accesses[i], &places[i], node);
}

static void order_leave(Order *order, OrderNode *node) {
        for (size_t i = 0; i < node->n_objects; i++) {
                if (node->objects[i])
                        order_release_object(order, node->objects[i]);
        }
        node->n_objects = 0;
}

static int node_list_predecessors(const OrderNode *node, uint64_t **ret_ids, size_t *ret_n) {
        const OrderNodeSet *set = &node->predecessors;
        uint64_t *ids = NULL;

        if (!ret_ids)
                return 0;

        if (set->n > 0) {
                ids = calloc(set->n, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < set->n; i++)
                ids[i] = ordernodeset_at(set)[i]->id;

        *ret_ids = ids;
        *ret_n = set->n;
        return 0;
}

static OrderNode *order_find(const Order *order, uint64_t job) {
        OrderNode key = {.id = job};

        return RB_FIND(OrderNodeTree, (struct OrderNodeTree *)&order->nodes, &key);
}

int order_add(Order *order, uint64_t job, const OrderAccess *accesses, size_t n_accesses,
              uint64_t **ret_predecessors, size_t *ret_n) {
        _cleanup_(ordernode_unrefp) OrderNode *node = NULL;
        int r;

        if (job <= order->last && order_find(order, job))
                return -EEXIST;
        r = order_reserve_places(order, n_accesses);
        if (r < 0)
                return r;

        r = ordernode_new(job, n_accesses, &node);
        if (r < 0)
                return r;

        r = order_enter(order, node, accesses, n_accesses);
        if (r >= 0)
                r = order_prepare(order, node, accesses, n_accesses);
        if (r >= 0)
                r = node_list_predecessors(node, ret_predecessors, ret_n);
        if (r < 0) {
                order_leave(order, node);
                return r;
        }

        node_commit(node, accesses, order->places, n_accesses);
        order->last = MAX(order->last, job);
        RB_INSERT(OrderNodeTree, &order->nodes, node);
        order->n_nodes++;
        TAKE_PTR(node);
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
        while ((node = RB_MIN(OrderNodeTree, &order->nodes))) {
                RB_REMOVE(OrderNodeTree, &order->nodes, node);
                ordernode_unref(node);
        }
        free(order->places);
        free(order);
        return NULL;
}

void order_remove(Order *order, uint64_t job) {
        OrderNode *node = order_find(order, job);
        bool is_gap;

        if (!node)
                return;

        RB_REMOVE(OrderNodeTree, &order->nodes, node);
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

bool order_is_free(Order *order, uint64_t job) {
        OrderNode *node = order_find(order, job);

        return !node || !ordernode_is_waiting(node, &order->marks);
}

int order_predecessors(Order *order, uint64_t job, uint64_t **ret_predecessors, size_t *ret_n) {
        OrderNode *node = order_find(order, job);
        int r;

        if (!node)
                return -ENOENT;

        r = ordernode_resolve(node, &order->marks);
        if (r < 0)
                return r;
        return node_list_predecessors(node, ret_predecessors, ret_n);
}

size_t order_n_jobs(const Order *order) {
        return order->n_nodes;
}
