/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/order.h"

#include <assert.h>
#include <string.h>

#include <uv/tree.h>

#define CELLS_MIN        1024 /* below that an object is never seen as a whole */
#define CELLS_PER_ACCESS 64

typedef struct Node Node;
typedef struct Object Object;

typedef struct NodeSet {
        Node **nodes; /* each holds a reference */
        size_t n;
        size_t size;
} NodeSet;

/*
 * A job. After it ended it is "spent" as soon as all it waited for ended too.
 * Until then it stands for its predecessors wherever it is still named, so that
 * nobody overtakes them through the gap it left.
 */
struct Node {
        uint64_t id;
        RB_ENTRY(Node) entry; /* order->nodes, while live */
        size_t n_refs;
        bool live;
        NodeSet predecessors;
        Object **objects; /* one an access, while live */
        size_t n_objects;
        uint64_t mark; /* the walk that saw it last */
        Node *next;    /* of those to be walked or freed */
};

/* A range of one object in which every byte has the same history. */
typedef struct Segment {
        uint64_t start, end;
        RB_ENTRY(Segment) entry; /* object->segments, disjoint */
        NodeSet writers;         /* the last one; several once the object was seen as a whole */
        NodeSet readers;         /* since then */
} Segment;

RB_HEAD(SegmentTree, Segment);
RB_HEAD(ObjectTree, Object);
RB_HEAD(NodeTree, Node);

struct Object {
        uint64_t id;
        RB_ENTRY(Object) entry; /* order->objects */
        struct SegmentTree segments;
        size_t n_segments;
        size_t n_accesses; /* of live jobs */
        size_t n_grown;    /* segments and cells made since the last sweep */
        size_t sweep_at;   /* how many of them ask for the next */
};

struct Order {
        struct NodeTree nodes;
        struct ObjectTree objects;
        size_t n_nodes;
        uint64_t marks;
};

static int uint64_compare(uint64_t a, uint64_t b) {
        return (a > b) - (a < b);
}

static int segment_compare(Segment *a, Segment *b) {
        return uint64_compare(a->start, b->start);
}

static int object_compare(Object *a, Object *b) {
        return uint64_compare(a->id, b->id);
}

static int node_compare(Node *a, Node *b) {
        return uint64_compare(a->id, b->id);
}

RB_GENERATE_STATIC(SegmentTree, Segment, entry, segment_compare)
RB_GENERATE_STATIC(ObjectTree, Object, entry, object_compare)
RB_GENERATE_STATIC(NodeTree, Node, entry, node_compare)

/* ---- sets of nodes ---- */

static void node_unref(Node *node);

static int nodeset_reserve(NodeSet *set, size_t n_more) {
        size_t size = MAX(set->size, (size_t)4);
        Node **nodes;

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

/* Needs a reserved place. */
static void nodeset_push(NodeSet *set, Node *node) {
        assert(set->n < set->size);
        node->n_refs++;
        set->nodes[set->n++] = node;
}

static int nodeset_append(NodeSet *set, Node *node) {
        int r;

        r = nodeset_reserve(set, 1);
        if (r < 0)
                return r;

        nodeset_push(set, node);
        return 0;
}

static void nodeset_clear(NodeSet *set) {
        for (size_t i = 0; i < set->n; i++)
                node_unref(set->nodes[i]);
        set->n = 0;
}

static void nodeset_finish(NodeSet *set) {
        nodeset_clear(set);
        free(set->nodes);
        *set = (NodeSet){0};
}

static int nodeset_copy(NodeSet *set, const NodeSet *from) {
        int r;

        r = nodeset_reserve(set, from->n + 1); /* one more: whoever splits also adds */
        if (r < 0)
                return r;

        for (size_t i = 0; i < from->n; i++)
                nodeset_push(set, from->nodes[i]);
        return 0;
}

/* ---- jobs ---- */

/* Not by recursion: jobs cancelled last to first leave long chains. */
static void node_unref(Node *node) {
        if (--node->n_refs > 0)
                return;

        node->next = NULL;
        while (node) {
                Node *dead = node;

                node = dead->next;
                for (size_t i = 0; i < dead->predecessors.n; i++) {
                        Node *predecessor = dead->predecessors.nodes[i];

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
DEFINE_CLEANUP(Node, node_unref)

static int node_new(uint64_t id, size_t n_accesses, Node **ret_node) {
        _cleanup_(node_unrefp) Node *node = calloc(1, sizeof(*node));

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

static Node *walk_push(Node *list, const NodeSet *set, uint64_t mark) {
        for (size_t i = 0; i < set->n; i++) {
                Node *node = set->nodes[i];

                if (node->mark == mark)
                        continue;
                node->mark = mark;
                node->next = list;
                list = node;
        }
        return list;
}

/* Adds the live ones of @from to @to, each once a @mark, and what the ended ones stand for. */
static int nodeset_resolve(NodeSet *to, const NodeSet *from, uint64_t mark) {
        Node *list = walk_push(NULL, from, mark);
        int r;

        while (list) {
                Node *node = list;

                list = node->next;
                if (!node->live) {
                        list = walk_push(list, &node->predecessors, mark);
                        continue;
                }
                r = nodeset_append(to, node);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Names live jobs only, from then on; without memory for it, what stands there is still true. */
static int node_resolve(Order *order, Node *node) {
        NodeSet set = {0};
        int r;

        r = nodeset_resolve(&set, &node->predecessors, ++order->marks);
        if (r < 0) {
                nodeset_finish(&set);
                return r;
        }

        nodeset_finish(&node->predecessors);
        node->predecessors = set;
        return 0;
}

/* Looked at from the end; most of the time one look is enough. */
static bool node_is_waiting(Order *order, Node *node) {
        NodeSet *set = &node->predecessors;

        while (set->n > 0) {
                Node *last = set->nodes[set->n - 1];

                if (last->live)
                        return true;
                if (last->predecessors.n > 0)
                        return node_resolve(order, node) < 0 || set->n > 0;
                set->n--;
                node_unref(last);
        }
        return false;
}

static bool node_is_spent(Order *order, Node *node) {
        return !node->live && !node_is_waiting(order, node);
}

static void nodeset_drop_spent(Order *order, NodeSet *set) {
        size_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                if (node_is_spent(order, set->nodes[i]))
                        node_unref(set->nodes[i]);
                else
                        set->nodes[n++] = set->nodes[i];
        set->n = n;
}

/* ---- segments ---- */

static Segment *segment_free(Segment *segment) {
        if (!segment)
                return NULL;

        nodeset_finish(&segment->readers);
        nodeset_finish(&segment->writers);
        free(segment);
        return NULL;
}
DEFINE_CLEANUP(Segment, segment_free)

/* With a place for one reader and one writer, so that nothing fails once all segments stand. */
static int object_add_segment(Object *object, uint64_t start, uint64_t end, const Segment *like) {
        _cleanup_(segment_freep) Segment *segment = calloc(1, sizeof(*segment));
        static const Segment empty;
        int r;

        if (!segment)
                return -ENOMEM;

        segment->start = start;
        segment->end = end;
        r = nodeset_copy(&segment->writers, like ? &like->writers : &empty.writers);
        if (r < 0)
                return r;
        r = nodeset_copy(&segment->readers, like ? &like->readers : &empty.readers);
        if (r < 0)
                return r;

        RB_INSERT(SegmentTree, &object->segments, segment);
        object->n_segments++;
        object->n_grown += 1 + segment->writers.n + segment->readers.n;
        TAKE_PTR(segment);
        return 0;
}

static void object_drop_segment(Object *object, Segment *segment) {
        RB_REMOVE(SegmentTree, &object->segments, segment);
        object->n_segments--;
        segment_free(segment);
}

/* The first that ends behind @offset, or NULL. */
static Segment *object_find(Object *object, uint64_t offset) {
        Segment *segment = RB_ROOT(&object->segments), *found = NULL;

        while (segment) {
                if (segment->end <= offset) {
                        segment = RB_RIGHT(segment, entry);
                        continue;
                }
                found = segment;
                segment = RB_LEFT(segment, entry);
        }
        return found;
}

static Segment *object_next(Object *object, Segment *segment, uint64_t end) {
        segment = RB_NEXT(SegmentTree, &object->segments, segment);
        return segment && segment->start < end ? segment : NULL;
}

static Segment *object_first(Object *object, uint64_t start, uint64_t end) {
        Segment *segment = object_find(object, start);

        return segment && segment->start < end ? segment : NULL;
}

static int object_split(Object *object, uint64_t at) {
        Segment *segment = object_find(object, at);
        int r;

        if (!segment || segment->start >= at)
                return 0;

        r = object_add_segment(object, at, segment->end, segment);
        if (r < 0)
                return r;
        segment->end = at;
        return 0;
}

/* Makes segments that cover [start, end) exactly; changes no history. */
static int object_cover(Object *object, uint64_t start, uint64_t end) {
        uint64_t at = start;
        int r;

        r = object_split(object, start);
        if (r < 0)
                return r;
        r = object_split(object, end);
        if (r < 0)
                return r;

        while (at < end) {
                Segment *segment = object_find(object, at);
                uint64_t next = segment ? MIN(segment->start, end) : end;

                if (next > at)
                        r = object_add_segment(object, at, next, NULL);
                else
                        r = nodeset_reserve(&segment->readers, 1);
                if (r < 0)
                        return r;
                at = next > at ? next : segment->end;
        }
        return 0;
}

/* ---- objects ---- */

static Object *object_free(Object *object) {
        Segment *segment;

        while ((segment = RB_MIN(SegmentTree, &object->segments)))
                object_drop_segment(object, segment);
        free(object);
        return NULL;
}

static int order_get_object(Order *order, uint64_t id, Object **ret_object) {
        Object *object, key = {.id = id};

        object = RB_FIND(ObjectTree, &order->objects, &key);
        if (!object) {
                object = calloc(1, sizeof(*object));
                if (!object)
                        return -ENOMEM;
                object->id = id;
                object->sweep_at = CELLS_MIN;
                RB_INSERT(ObjectTree, &order->objects, object);
        }

        *ret_object = object;
        return 0;
}

/* No live job uses it: it orders nothing. */
static void order_release_object(Order *order, Object *object) {
        if (object->n_accesses > 0)
                return;
        RB_REMOVE(ObjectTree, &order->objects, object);
        object_free(object);
}

/* Return: how many segments and cells are left. */
static size_t object_sweep(Order *order, Object *object) {
        Segment *segment, *next;
        size_t n = 0;

        for (segment = RB_MIN(SegmentTree, &object->segments); segment; segment = next) {
                next = RB_NEXT(SegmentTree, &object->segments, segment);
                nodeset_drop_spent(order, &segment->writers);
                nodeset_drop_spent(order, &segment->readers);
                if (segment->writers.n + segment->readers.n == 0)
                        object_drop_segment(object, segment);
                else
                        n += 1 + segment->writers.n + segment->readers.n;
        }
        return n;
}

/* One segment in which everybody who is left counts as a writer. */
static int object_unite(Order *order, Object *object) {
        uint64_t mark = ++order->marks;
        NodeSet all = {0};
        Segment *segment;
        int r;

        RB_FOREACH(segment, SegmentTree, &object->segments) {
                r = nodeset_resolve(&all, &segment->writers, mark);
                if (r >= 0)
                        r = nodeset_resolve(&all, &segment->readers, mark);
                if (r < 0) {
                        nodeset_finish(&all);
                        return r;
                }
        }

        segment = RB_MIN(SegmentTree, &object->segments);
        while (object->n_segments > 1)
                object_drop_segment(object, RB_MAX(SegmentTree, &object->segments));
        segment->start = 0;
        segment->end = UINT64_MAX;
        nodeset_clear(&segment->readers);
        nodeset_finish(&segment->writers);
        segment->writers = all;
        return 0;
}

/*
 * Ended jobs are dropped from segments only here, when those have doubled since,
 * which costs O(1) a job. What is left may still be many cells for few jobs:
 * thousands of readers of all of it, then thousands of slices of it.
 */
static int object_tidy(Order *order, Object *object) {
        size_t n;

        if (object->n_grown < object->sweep_at)
                return 0;

        n = object_sweep(order, object);
        object->n_grown = 0;
        object->sweep_at = n + CELLS_MIN;
        if (n <= CELLS_MIN + CELLS_PER_ACCESS * object->n_accesses)
                return 0;
        return object_unite(order, object);
}

/* ---- adding ---- */

static int node_collect(Node *node, const OrderAccess *access, Object *object, uint64_t mark) {
        uint64_t end = access->offset + access->length;
        Segment *segment = object_first(object, access->offset, end);
        int r;

        for (; segment; segment = object_next(object, segment, end)) {
                r = nodeset_resolve(&node->predecessors, &segment->writers, mark);
                if (r < 0)
                        return r;
                if (!access->write)
                        continue;
                r = nodeset_resolve(&node->predecessors, &segment->readers, mark);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void node_read(Node *node, const OrderAccess *access, Object *object) {
        uint64_t end = access->offset + access->length;
        Segment *segment = object_first(object, access->offset, end);

        for (; segment; segment = object_next(object, segment, end)) {
                NodeSet *readers = &segment->readers;

                if (readers->n > 0 && readers->nodes[readers->n - 1] == node)
                        continue;
                nodeset_push(readers, node);
                object->n_grown++;
        }
}

/* Afterwards one segment is left, this job's alone; it takes in what the job wrote beside it. */
static void node_write(Node *node, const OrderAccess *access, Object *object) {
        uint64_t end = access->offset + access->length;
        Segment *segment = object_first(object, access->offset, end), *other;

        while ((other = object_next(object, segment, end))) {
                segment->end = other->end;
                object_drop_segment(object, other);
        }
        nodeset_clear(&segment->readers);
        nodeset_clear(&segment->writers);
        nodeset_push(&segment->writers, node);
}

/* Finds what each access is about; from here on nothing of those objects is swept. */
static int order_enter(Order *order, Node *node, const OrderAccess *accesses, size_t n_accesses) {
        int r;

        for (size_t i = 0; i < n_accesses; i++) {
                if (accesses[i].length == 0)
                        continue;
                r = order_get_object(order, accesses[i].object, &node->objects[i]);
                if (r < 0)
                        return r;
                node->objects[i]->n_accesses++;
                r = object_tidy(order, node->objects[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int order_prepare(Order *order, Node *node, const OrderAccess *accesses, size_t n_accesses) {
        uint64_t mark = ++order->marks;
        int r;

        for (size_t i = 0; i < n_accesses; i++) {
                if (!node->objects[i])
                        continue;
                r = object_cover(node->objects[i], accesses[i].offset,
                                 accesses[i].offset + accesses[i].length);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < n_accesses; i++) {
                if (!node->objects[i])
                        continue;
                r = node_collect(node, &accesses[i], node->objects[i], mark);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads first: a write unites segments and so leaves no reader of its own job in them. */
static void node_commit(Node *node, const OrderAccess *accesses, size_t n_accesses) {
        bool cautious = node->predecessors.n > ORDER_DIRECT_MAX;

        for (size_t i = 0; i < n_accesses; i++)
                if (node->objects[i] && !accesses[i].write && !cautious)
                        node_read(node, &accesses[i], node->objects[i]);
        for (size_t i = 0; i < n_accesses; i++)
                if (node->objects[i] && (accesses[i].write || cautious))
                        node_write(node, &accesses[i], node->objects[i]);
}

static void order_leave(Order *order, Node *node) {
        for (size_t i = 0; i < node->n_objects; i++) {
                Object *object = node->objects[i];

                if (!object)
                        continue;
                object->n_accesses--;
                order_release_object(order, object);
        }
        node->n_objects = 0;
}

static int node_list_predecessors(const Node *node, uint64_t **ret_ids, size_t *ret_n) {
        const NodeSet *set = &node->predecessors;
        uint64_t *ids = NULL;

        if (!ret_ids)
                return 0;

        if (set->n > 0) {
                ids = calloc(set->n, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < set->n; i++)
                ids[i] = set->nodes[i]->id;

        *ret_ids = ids;
        *ret_n = set->n;
        return 0;
}

static Node *order_find(const Order *order, uint64_t job) {
        Node key = {.id = job};

        return RB_FIND(NodeTree, (struct NodeTree *)&order->nodes, &key);
}

int order_add(Order *order, uint64_t job, const OrderAccess *accesses, size_t n_accesses,
              uint64_t **ret_predecessors, size_t *ret_n) {
        _cleanup_(node_unrefp) Node *node = NULL;
        int r;

        if (order_find(order, job))
                return -EEXIST;

        r = node_new(job, n_accesses, &node);
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

        node_commit(node, accesses, n_accesses);
        RB_INSERT(NodeTree, &order->nodes, node);
        order->n_nodes++;
        TAKE_PTR(node);
        return 0;
}

/* ---- life and queries ---- */

int order_new(Order **ret_order) {
        Order *order = calloc(1, sizeof(*order));

        if (!order)
                return -ENOMEM;

        *ret_order = order;
        return 0;
}

Order *order_free(Order *order) {
        Object *object;
        Node *node;

        if (!order)
                return NULL;

        while ((object = RB_MIN(ObjectTree, &order->objects))) {
                RB_REMOVE(ObjectTree, &order->objects, object);
                object_free(object);
        }
        while ((node = RB_MIN(NodeTree, &order->nodes))) {
                RB_REMOVE(NodeTree, &order->nodes, node);
                node_unref(node);
        }
        free(order);
        return NULL;
}

void order_remove(Order *order, uint64_t job) {
        Node *node = order_find(order, job);

        if (!node)
                return;

        RB_REMOVE(NodeTree, &order->nodes, node);
        order->n_nodes--;
        node->live = false;
        order_leave(order, node);
        if (!node_is_waiting(order, node))
                nodeset_finish(&node->predecessors);
        node_unref(node);
}

bool order_is_free(Order *order, uint64_t job) {
        Node *node = order_find(order, job);

        return !node || !node_is_waiting(order, node);
}

int order_predecessors(Order *order, uint64_t job, uint64_t **ret_predecessors, size_t *ret_n) {
        Node *node = order_find(order, job);
        int r;

        if (!node)
                return -ENOENT;

        r = node_resolve(order, node);
        if (r < 0)
                return r;
        return node_list_predecessors(node, ret_predecessors, ret_n);
}

size_t order_n_jobs(const Order *order) {
        return order->n_nodes;
}
