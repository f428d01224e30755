/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/graph.h"

#include "driver/cpu/api.h"
#include "driver/cpu/copy.h"
#include "util/macro.h"

#define GRAPH_MAGIC      0x67726170u
#define GRAPH_NODE_MAGIC 0x6e6f6465u

CUresult graph_check(const Graph *graph) {
        return graph && graph->magic == GRAPH_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_node_check(const GraphNode *node) {
        return node && node->magic == GRAPH_NODE_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphCreate(CUgraph *ret_graph, unsigned int flags) {
        static _Atomic uint64_t n_graphs;
        Graph *graph;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!ret_graph || flags)
                return CUDA_ERROR_INVALID_VALUE;

        graph = calloc(1, sizeof(*graph));
        if (!graph)
                return CUDA_ERROR_OUT_OF_MEMORY;

        graph->magic = GRAPH_MAGIC;
        graph->number = ++n_graphs;
        *ret_graph = graph;
        return CUDA_SUCCESS;
}

/* Possible after a fault too: it is host memory. */
CUresult cuGraphDestroy(CUgraph graph) {
        CUresult r;

        r = graph_check(graph);
        if (r)
                return r;

        for (size_t i = 0; i < graph->n_nodes; i++) {
                work_unref(graph->nodes[i]->work);
                graph->nodes[i]->magic = 0;
                free(graph->nodes[i]);
        }
        free(graph->nodes);
        graph->magic = 0;
        free(graph);
        return CUDA_SUCCESS;
}

/* What every added node is checked for. */
static CUresult graph_enter(CUgraphNode *ret_node, const Graph *graph, const CUgraphNode *after,
                            size_t n_after, const void *params) {
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (!r)
                r = graph_check(graph);
        if (r)
                return r;
        if (!ret_node || !params || (n_after && !after))
                return CUDA_ERROR_INVALID_VALUE;

        for (size_t i = 0; i < n_after; i++)
                if (graph_node_check(after[i]) || after[i]->graph != graph)
                        return CUDA_ERROR_INVALID_VALUE;

        return CUDA_SUCCESS;
}

/* Takes over @work. */
static CUresult graph_add(Graph *graph, GraphKind kind, Work *work, CUgraphNode *ret_node) {
        _cleanup_(work_unrefp) Work *owned = work;
        GraphNode **grown, *node;

        grown = realloc(graph->nodes, (graph->n_nodes + 1) * sizeof(*grown));
        if (!grown)
                return CUDA_ERROR_OUT_OF_MEMORY;
        graph->nodes = grown;
        node = calloc(1, sizeof(*node));
        if (!node)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *node = (GraphNode){
                .magic = GRAPH_NODE_MAGIC,
                .graph = graph,
                .index = graph->n_nodes,
                .kind = kind,
                .work = TAKE_PTR(owned),
        };
        graph->nodes[graph->n_nodes++] = node;
        *ret_node = node;
        return CUDA_SUCCESS;
}

CUresult graph_append(Graph *graph, Work *work) {
        CUgraphNode node;

        return graph_add(graph, GRAPH_CALL, work, &node);
}

CUresult graph_kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, const Work *old,
                           Work **ret_work) {
        LaunchShape shape = {.cluster = {1, 1, 1}};
        Context *context;
        CUresult r;

        r = function_enter(params->func, &context);
        if (r)
                return r == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : r;
        if (params->extra)
                return CUDA_ERROR_INVALID_VALUE;

        if (old)
                shape = ((const LaunchWork *)old)->shape;
        shape.grid = (GpuqCpuIndex){params->gridDimX, params->gridDimY, params->gridDimZ};
        shape.block = (GpuqCpuIndex){params->blockDimX, params->blockDimY, params->blockDimZ};
        shape.shared_bytes = params->sharedMemBytes;
        return launch_work_new(params->func, &shape, params->kernelParams, ret_work);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after,
                                 size_t n_after, const CUDA_KERNEL_NODE_PARAMS *params) {
        Work *work;
        CUresult r;

        r = graph_enter(ret_node, graph, after, n_after, params);
        if (!r)
                r = graph_kernel_work(params, NULL, &work);
        if (r)
                return r;

        return graph_add(graph, GRAPH_KERNEL, work, ret_node);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after,
                              size_t n_after, const CUDA_MEMCPY3D *params, CUcontext context) {
        Work *work;
        CUresult r;

        r = graph_enter(ret_node, graph, after, n_after, params);
        if (!r && !context)
                r = CUDA_ERROR_INVALID_VALUE;
        if (!r)
                r = copy_work_new(params, &work);
        if (r)
                return r;

        return graph_add(graph, GRAPH_COPY, work, ret_node);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after,
                              size_t n_after, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context) {
        Work *work;
        CUresult r;

        r = graph_enter(ret_node, graph, after, n_after, params);
        if (!r && !context)
                r = CUDA_ERROR_INVALID_VALUE;
        if (!r)
                r = copy_fill_new(params, &work);
        if (r)
                return r;

        return graph_add(graph, GRAPH_FILL, work, ret_node);
}

/* ---- a graph in a graph ------------------------------------------------------------------ */

typedef struct ChildWork {
        Work work;
        size_t n_works;
        Work *works[];
} ChildWork;

static CUresult child_run(Work *work, struct CUstream_st *stream) {
        ChildWork *child = (ChildWork *)work;
        CUresult r = CUDA_SUCCESS;

        for (size_t i = 0; i < child->n_works && !r; i++)
                r = child->works[i]->run(child->works[i], stream);
        return r;
}

static void child_free(Work *work) {
        ChildWork *child = (ChildWork *)work;

        for (size_t i = 0; i < child->n_works; i++)
                work_unref(child->works[i]);
        free(child);
}

CUresult graph_child_work(const Graph *graph, Work **ret_work) {
        ChildWork *child;
        CUresult r;

        r = graph_check(graph);
        if (r)
                return r;
        child = calloc(1, sizeof(*child) + graph->n_nodes * sizeof(*child->works));
        if (!child)
                return CUDA_ERROR_OUT_OF_MEMORY;

        child->work = (Work){.n_refs = 1, .run = child_run, .free = child_free};
        child->n_works = graph->n_nodes;
        for (size_t i = 0; i < graph->n_nodes; i++)
                child->works[i] = work_ref(graph->nodes[i]->work);
        *ret_work = &child->work;
        return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *after,
                                  size_t n_after, CUgraph child) {
        Work *work;
        CUresult r;

        r = graph_enter(ret_node, graph, after, n_after, child);
        if (!r)
                r = graph_child_work(child, &work);
        if (r)
                return r;

        return graph_add(graph, GRAPH_CHILD, work, ret_node);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue *value) {
        const LaunchWork *old;
        LaunchShape shape;
        Work *work;
        CUresult r;

        r = context_healthy();
        if (!r)
                r = graph_node_check(node);
        if (r)
                return r;
        if (node->kind != GRAPH_KERNEL || !value)
                return CUDA_ERROR_INVALID_VALUE;

        old = (const LaunchWork *)node->work;
        shape = old->shape;
        r = launch_attribute(&shape, attribute, value);
        if (!r)
                r = launch_work_new(old->function, &shape, old->params, &work);
        if (r)
                return r;

        work_unref(node->work);
        node->work = work;
        return CUDA_SUCCESS;
}
