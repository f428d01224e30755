/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph
 */
#include "worker/graph.h"

#include <string.h>

/* What one step adds to the shape. */
typedef struct GraphShape {
        uint32_t kind;
        uint32_t shared_bytes; /* or a fill's width */
        const Function *function;
        uint32_t grid[3], block[3], cluster[3];
        uint32_t cooperative;
        uint64_t length; /* of a copy in bytes, of a fill in elements */
} GraphShape;

void graphs_init(Graphs *graphs, Context *context) {
        *graphs = (Graphs){.context = context};
        TAILQ_INIT(&graphs->list);
}

/* ---- shape -------------------------------------------------------------------- */

size_t graph_key_room(const Program *program) {
        return program->n_steps * sizeof(GraphShape);
}

void graph_key(const Program *program, uint8_t *key) {
        GraphShape *shapes = (GraphShape *)key;

        for (size_t i = 0; i < program->n_steps; ++i) {
                const Step *step = &program->steps[i];
                GraphShape *shape = &shapes[i];

                shape->kind = step->kind;
                if (step->kind == STEP_COPY) {
                        shape->length = step->copy.length;
                } else if (step->kind == STEP_FILL) {
                        shape->length = step->fill.n;
                        shape->shared_bytes = step->fill.width;
                } else {
                        shape->function = step->launch.function;
                        shape->shared_bytes = step->launch.shared_bytes;
                        memcpy(shape->grid, step->launch.grid, sizeof(shape->grid));
                        memcpy(shape->block, step->launch.block, sizeof(shape->block));
                        memcpy(shape->cluster, step->launch.cluster, sizeof(shape->cluster));
                        shape->cooperative = step->launch.cooperative;
                }
        }
}

/* Of whole words, which a shape is. */
static uint64_t graph_hash(const uint8_t *key, size_t n_key) {
        uint64_t hash = 0x9e3779b97f4a7c15u, word;

        for (size_t i = 0; i + sizeof(word) <= n_key; i += sizeof(word)) {
                memcpy(&word, key + i, sizeof(word));
                hash = (hash ^ word) * 0xff51afd7ed558ccdu;
                hash ^= hash >> 32;
        }
        return hash;
}

/* ---- nodes ------------------------------------------------------------------------ */

static CUDA_KERNEL_NODE_PARAMS graph_kernel(const ProgramLaunch *launch) {
        return (CUDA_KERNEL_NODE_PARAMS){
                .func = launch->function->function,
                .gridDimX = launch->grid[0],
                .gridDimY = launch->grid[1],
                .gridDimZ = launch->grid[2],
                .blockDimX = launch->block[0],
                .blockDimY = launch->block[1],
                .blockDimZ = launch->block[2],
                .sharedMemBytes = launch->shared_bytes,
                .kernelParams = launch->values,
        };
}

static CUDA_MEMCPY3D graph_copy(const ProgramCopy *copy) {
        return (CUDA_MEMCPY3D){
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = place_address(&copy->from),
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = place_address(&copy->to),
                .WidthInBytes = copy->length,
                .Height = 1,
                .Depth = 1,
        };
}

static CUDA_MEMSET_NODE_PARAMS graph_fill(const ProgramFill *fill) {
        return (CUDA_MEMSET_NODE_PARAMS){
                .dst = place_address(&fill->to),
                .value = fill->value,
                .elementSize = fill->width,
                .width = fill->n,
                .height = 1,
        };
}

static CUresult graph_set_attributes(const Driver *cu, CUgraphNode node,
                                     const ProgramLaunch *launch) {
        CUkernelNodeAttrValue value = {0};
        CUresult result = CUDA_SUCCESS;

        if (launch->cooperative) {
                value.cooperative = 1;
                result = cu->cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                           &value);
        }
        if (result == CUDA_SUCCESS && launch->cluster[0]) {
                value = (CUkernelNodeAttrValue){
                        .clusterDim = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
                };
                result = cu->cuGraphKernelNodeSetAttribute(
                        node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
        }
        return result;
}

/* Appends a step behind the one before. */
static CUresult graph_add(const Context *context, Graph *graph, size_t i, const Step *step) {
        const Driver *cu = context->cu;
        const CUgraphNode *after = i > 0 ? &graph->nodes[i - 1] : NULL;
        size_t n_after = i > 0;

        if (step->kind == STEP_COPY) {
                CUDA_MEMCPY3D params = graph_copy(&step->copy);

                return cu->cuGraphAddMemcpyNode(&graph->nodes[i], graph->graph, after, n_after,
                                                &params, context->context);
        }
        if (step->kind == STEP_FILL) {
                CUDA_MEMSET_NODE_PARAMS params = graph_fill(&step->fill);

                return cu->cuGraphAddMemsetNode(&graph->nodes[i], graph->graph, after, n_after,
                                                &params, context->context);
        }

        CUDA_KERNEL_NODE_PARAMS params = graph_kernel(&step->launch);
        CUresult result =
                cu->cuGraphAddKernelNode(&graph->nodes[i], graph->graph, after, n_after, &params);

        if (result != CUDA_SUCCESS)
                return result;
        return graph_set_attributes(cu, graph->nodes[i], &step->launch);
}

static CUresult graph_patch_step(const Context *context, const Graph *graph, size_t i,
                                 const Step *step) {
        const Driver *cu = context->cu;

        if (step->kind == STEP_COPY) {
                CUDA_MEMCPY3D params = graph_copy(&step->copy);

                return cu->cuGraphExecMemcpyNodeSetParams(graph->exec, graph->nodes[i], &params,
                                                          context->context);
        }
        if (step->kind == STEP_FILL) {
                CUDA_MEMSET_NODE_PARAMS params = graph_fill(&step->fill);

                return cu->cuGraphExecMemsetNodeSetParams(graph->exec, graph->nodes[i], &params,
                                                          context->context);
        }

        CUDA_KERNEL_NODE_PARAMS params = graph_kernel(&step->launch);

        return cu->cuGraphExecKernelNodeSetParams(graph->exec, graph->nodes[i], &params);
}

static CUresult graph_patch(const Context *context, const Graph *graph, const Program *program) {
        for (size_t i = 0; i < program->n_steps; ++i) {
                CUresult result = graph_patch_step(context, graph, i, &program->steps[i]);

                if (result != CUDA_SUCCESS)
                        return result;
        }
        return CUDA_SUCCESS;
}

/* ---- life ----------------------------------------------------------------------------- */

static Graph *graph_free(Graph *graph, const Driver *cu) {
        if (graph->exec)
                cu->cuGraphExecDestroy(graph->exec);
        if (graph->graph)
                cu->cuGraphDestroy(graph->graph);
        free(graph->nodes);
        free(graph->key);
        free(graph);
        return NULL;
}

static void graphs_remove(Graphs *graphs, Graph *graph) {
        TAILQ_REMOVE(&graphs->list, graph, link);
        --graphs->n;
        graph_free(graph, graphs->context->cu);
}

void graphs_clear(Graphs *graphs) {
        while (!TAILQ_EMPTY(&graphs->list))
                graphs_remove(graphs, TAILQ_FIRST(&graphs->list));
}

static void graphs_trim(Graphs *graphs) {
        Graph *graph, *before;

        for (graph = TAILQ_LAST(&graphs->list, GraphsList); graph && graphs->n > GRAPHS_MAX;
             graph = before) {
                before = TAILQ_PREV(graph, GraphsList, link);
                if (graph->busy)
                        continue;
                graphs_remove(graphs, graph);
                ++graphs->n_evicted;
        }
}

static Graph *graphs_find(Graphs *graphs, const uint8_t *key, size_t n_key, uint64_t hash) {
        Graph *graph;

        TAILQ_FOREACH(graph, &graphs->list, link)
        if (!graph->busy && graph->hash == hash && graph->n_key == n_key &&
            memcmp(graph->key, key, n_key) == 0)
                return graph;
        return NULL;
}

static CUresult graph_build(const Context *context, Graph *graph, const Program *program) {
        const Driver *cu = context->cu;
        CUresult result;

        result = cu->cuGraphCreate(&graph->graph, 0);
        for (size_t i = 0; result == CUDA_SUCCESS && i < program->n_steps; ++i)
                result = graph_add(context, graph, i, &program->steps[i]);
        if (result != CUDA_SUCCESS)
                return result;
        return cu->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0);
}

/* @key is consumed in any case. */
static int graphs_make(Graphs *graphs, const Program *program, uint8_t *key, size_t n_key,
                       uint64_t hash, Graph **ret_graph, Failure *failure) {
        Graph *graph = calloc(1, sizeof(*graph));
        int r;

        if (!graph) {
                free(key);
                return -ENOMEM;
        }
        graph->key = key;
        graph->n_key = n_key;
        graph->hash = hash;
        graph->nodes = calloc(program->n_steps, sizeof(*graph->nodes));
        if (!graph->nodes) {
                graph_free(graph, graphs->context->cu);
                return -ENOMEM;
        }

        r = result_check(graphs->context->cu, graph_build(graphs->context, graph, program),
                         GPUQ__V1__CODE__E_LAUNCH, "making a graph", failure);
        if (r) {
                graph_free(graph, graphs->context->cu);
                return r;
        }

        TAILQ_INSERT_HEAD(&graphs->list, graph, link);
        ++graphs->n;
        ++graphs->n_made;
        *ret_graph = graph;
        return 0;
}

int graphs_take(Graphs *graphs, const Program *program, Graph **ret_graph, Failure *failure) {
        size_t n_key = graph_key_room(program);
        uint8_t *key = calloc(1, n_key);
        uint64_t hash;
        Graph *graph;
        int r;

        if (!key)
                return -ENOMEM;

        graph_key(program, key);
        hash = graph_hash(key, n_key);
        graph = graphs_find(graphs, key, n_key, hash);
        if (graph && graph_patch(graphs->context, graph, program) != CUDA_SUCCESS) {
                /* A new one instead; if the context is spent, making it says so. */
                ++graphs->n_evicted;
                graphs_remove(graphs, graph);
                graph = NULL;
        }

        if (graph) {
                free(key);
                ++graphs->n_reused;
                TAILQ_REMOVE(&graphs->list, graph, link);
                TAILQ_INSERT_HEAD(&graphs->list, graph, link);
        } else {
                r = graphs_make(graphs, program, key, n_key, hash, &graph, failure);
                if (r)
                        return r;
        }

        graph->busy = true;
        *ret_graph = graph;
        return 0;
}

void graph_release(Graphs *graphs, Graph *graph) {
        if (!graph)
                return;
        graph->busy = false;
        graphs_trim(graphs);
}
