/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph, made ready to run
 *
 * A launch takes references of the nodes' work, so parameters that are set later
 * count from the next launch on. Launches of one exec never overlap.
 */
#include <pthread.h>

#include "driver/cpu/api.h"
#include "driver/cpu/copy.h"
#include "driver/cpu/graph.h"
#include "driver/cpu/stream.h"
#include "util/macro.h"

#define EXEC_MAGIC 0x65786563u

/* Shared by an exec and its launches, which may outlive it. */
typedef struct GraphTurn {
        _Atomic unsigned n_refs;
        pthread_mutex_t lock;
} GraphTurn;

typedef struct CUgraphExec_st {
        uint32_t magic;
        uint64_t number; /* of the graph it was made from */
        size_t n_nodes;
        GraphKind *kinds;
        Work **works;
        GraphTurn *turn;
} GraphExec;

typedef struct GraphRun {
        Work work;
        GraphTurn *turn;
        size_t n_works;
        Work *works[];
} GraphRun;

static GraphTurn *graph_turn_unref(GraphTurn *turn) {
        if (turn && --turn->n_refs == 0) {
                pthread_mutex_destroy(&turn->lock);
                free(turn);
        }
        return NULL;
}

static GraphTurn *graph_turn_new(void) {
        GraphTurn *turn;

        turn = calloc(1, sizeof(*turn));
        if (!turn)
                return NULL;

        turn->n_refs = 1;
        pthread_mutex_init(&turn->lock, NULL);
        return turn;
}

static CUresult graph_exec_check(const GraphExec *exec) {
        return exec && exec->magic == EXEC_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static GraphExec *graph_exec_free(GraphExec *exec) {
        if (!exec)
                return NULL;

        for (size_t i = 0; exec->works && i < exec->n_nodes; i++)
                work_unref(exec->works[i]);
        graph_turn_unref(exec->turn);
        free(exec->works);
        free(exec->kinds);
        exec->magic = 0;
        free(exec);
        return NULL;
}

DEFINE_CLEANUP(GraphExec, graph_exec_free)

CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph,
                                     unsigned long long flags) {
        _cleanup_(graph_exec_freep) GraphExec *exec = NULL;
        CUresult r;

        r = context_healthy();
        if (!r)
                r = graph_check(graph);
        if (r)
                return r;
        if (!ret_exec)
                return CUDA_ERROR_INVALID_VALUE;

        exec = calloc(1, sizeof(*exec));
        if (!exec)
                return CUDA_ERROR_OUT_OF_MEMORY;

        exec->works = calloc(MAX(graph->n_nodes, 1), sizeof(*exec->works));
        exec->kinds = calloc(MAX(graph->n_nodes, 1), sizeof(*exec->kinds));
        exec->turn = graph_turn_new();
        if (!exec->works || !exec->kinds || !exec->turn)
                return CUDA_ERROR_OUT_OF_MEMORY;

        exec->magic = EXEC_MAGIC;
        exec->number = graph->number;
        exec->n_nodes = graph->n_nodes;
        for (size_t i = 0; i < graph->n_nodes; i++) {
                exec->kinds[i] = graph->nodes[i]->kind;
                exec->works[i] = work_ref(graph->nodes[i]->work);
        }
        *ret_exec = TAKE_PTR(exec);
        return CUDA_SUCCESS;
}

/* Possible after a fault too: it is host memory. */
CUresult cuGraphExecDestroy(CUgraphExec exec) {
        CUresult r;

        r = graph_exec_check(exec);
        if (r)
                return r;

        graph_exec_free(exec);
        return CUDA_SUCCESS;
}

/* ---- launching ------------------------------------------------------------------------ */

static CUresult graph_run(Work *work, Stream *stream) {
        GraphRun *run = (GraphRun *)work;
        CUresult r = CUDA_SUCCESS;

        pthread_mutex_lock(&run->turn->lock);
        for (size_t i = 0; i < run->n_works && !r && !stream->context->error; i++)
                r = run->works[i]->run(run->works[i], stream);
        pthread_mutex_unlock(&run->turn->lock);
        return r;
}

static void graph_run_free(Work *work) {
        GraphRun *run = (GraphRun *)work;

        for (size_t i = 0; i < run->n_works; i++)
                work_unref(run->works[i]);
        graph_turn_unref(run->turn);
        free(run);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
        Context *context;
        Stream *stream;
        GraphRun *run;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (!r)
                r = graph_exec_check(exec);
        if (r)
                return r;

        run = calloc(1, sizeof(*run) + exec->n_nodes * sizeof(*run->works));
        if (!run)
                return CUDA_ERROR_OUT_OF_MEMORY;

        run->work = (Work){.n_refs = 1, .run = graph_run, .free = graph_run_free};
        run->turn = exec->turn;
        run->turn->n_refs++;
        run->n_works = exec->n_nodes;
        for (size_t i = 0; i < exec->n_nodes; i++)
                run->works[i] = work_ref(exec->works[i]);
        return stream_push(stream, &run->work);
}

/* ---- setting parameters ------------------------------------------------------------------ */

static CUresult graph_exec_enter(GraphExec *exec, GraphNode *node, GraphKind kind,
                                 const void *params) {
        CUresult r;

        r = context_healthy();
        if (!r)
                r = graph_exec_check(exec);
        if (!r)
                r = graph_node_check(node);
        if (r)
                return r;

        return params && node->graph->number == exec->number && node->index < exec->n_nodes &&
                               exec->kinds[node->index] == kind
                       ? CUDA_SUCCESS
                       : CUDA_ERROR_INVALID_VALUE;
}

/* Takes over @work. */
static CUresult graph_exec_set(GraphExec *exec, const GraphNode *node, Work *work) {
        work_unref(exec->works[node->index]);
        exec->works[node->index] = work;
        return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params) {
        Work *work;
        CUresult r;

        r = graph_exec_enter(exec, node, GRAPH_KERNEL, params);
        if (!r)
                r = graph_kernel_work(params, exec->works[node->index], &work);
        if (r)
                return r;

        return graph_exec_set(exec, node, work);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *params, CUcontext context) {
        Work *work;
        CUresult r;

        r = graph_exec_enter(exec, node, GRAPH_COPY, params);
        if (!r)
                r = copy_work_new(params, &work);
        if (r)
                return r;

        return graph_exec_set(exec, node, work);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context) {
        Work *work;
        CUresult r;

        r = graph_exec_enter(exec, node, GRAPH_FILL, params);
        if (!r)
                r = copy_fill_new(params, &work);
        if (r)
                return r;

        return graph_exec_set(exec, node, work);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
        Work *work;
        CUresult r;

        r = graph_exec_enter(exec, node, GRAPH_CHILD, child);
        if (!r)
                r = graph_child_work(child, &work);
        if (r)
                return r;

        return graph_exec_set(exec, node, work);
}
