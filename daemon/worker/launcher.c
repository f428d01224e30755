/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launcher
 */
#include "worker/launcher.h"

#include <string.h>

static CUDA_KERNEL_NODE_PARAMS node_params(const CUlaunchConfig *config, CUfunction function,
                                           void **params) {
        return (CUDA_KERNEL_NODE_PARAMS){
                .func = function,
                .gridDimX = config->gridDimX,
                .gridDimY = config->gridDimY,
                .gridDimZ = config->gridDimZ,
                .blockDimX = config->blockDimX,
                .blockDimY = config->blockDimY,
                .blockDimZ = config->blockDimZ,
                .sharedMemBytes = config->sharedMemBytes,
                .kernelParams = params,
        };
}

static void graph_clear(LauncherGraph *graph, const Driver *cu) {
        if (graph->exec)
                cu->cuGraphExecDestroy(graph->exec);
        if (graph->graph)
                cu->cuGraphDestroy(graph->graph);
        *graph = (LauncherGraph){0};
}

static CUresult graph_make(LauncherGraph *graph, const Driver *cu,
                           const CUDA_KERNEL_NODE_PARAMS *params) {
        CUresult result = cu->cuGraphCreate(&graph->graph, 0);

        if (result == CUDA_SUCCESS)
                result = cu->cuGraphAddKernelNode(&graph->node, graph->graph, NULL, 0, params);
        if (result == CUDA_SUCCESS)
                result = cu->cuGraphInstantiateWithFlags(&graph->exec, graph->graph, 0);
        if (result != CUDA_SUCCESS)
                graph_clear(graph, cu);
        return result;
}

static CUresult graph_patch(LauncherGraph *graph, const Driver *cu,
                            const CUDA_KERNEL_NODE_PARAMS *params) {
        CUresult result;

        if (!graph->exec)
                result = graph_make(graph, cu, params);
        else
                result = cu->cuGraphExecKernelNodeSetParams(graph->exec, graph->node, params);
        if (result == CUDA_SUCCESS)
                graph->function = params->func;
        return result;
}

/*
 * A node keeps the cluster size that its first function was compiled for, whatever is patched in later: a
 * grid of 3 would run 2 blocks, with success. So such a function never uses a graph.
 */
static bool launcher_may_take(const Driver *cu, CUfunction function) {
        int width = 0;

        return cu->cuFuncGetAttribute(&width, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, function) !=
                       CUDA_SUCCESS ||
               width == 0;
}

/* Moves to the front the graph that last launched this function, else the least recently used.
 * Return: NULL: launch without a graph. */
static LauncherGraph *launcher_choose(Launcher *launcher, const Driver *cu, CUfunction function,
                                      bool may_make) {
        LauncherGraph *graphs = launcher->graphs, chosen;
        unsigned i = 0;

        if (graphs[0].function == function)
                return &graphs[0];

        while (i < LAUNCHER_GRAPHS - 1 && graphs[i].function != function)
                ++i;
        if (graphs[i].function != function && !launcher_may_take(cu, function))
                return NULL;
        if (!graphs[i].exec && !may_make)
                return NULL;
        chosen = graphs[i];
        memmove(graphs + 1, graphs, i * sizeof(*graphs));
        graphs[0] = chosen;
        return &graphs[0];
}

static CUresult launcher_try(Launcher *launcher, const Driver *cu, const CUlaunchConfig *config,
                             CUfunction function, void **params, bool may_make) {
        const CUDA_KERNEL_NODE_PARAMS node = node_params(config, function, params);
        LauncherGraph *graph = launcher_choose(launcher, cu, function, may_make);
        CUresult result;
        bool is_new;

        if (!graph)
                return CUDA_ERROR_NOT_SUPPORTED;
        is_new = !graph->exec;
        result = graph_patch(graph, cu, &node);
        launcher->n += is_new && result == CUDA_SUCCESS;
        return result == CUDA_SUCCESS ? cu->cuGraphLaunch(graph->exec, config->hStream) : result;
}

CUresult launcher_launch(Launcher *launcher, const Driver *cu, const CUlaunchConfig *config,
                         CUfunction function, void **params, bool may_make) {
        /* Attributes stay with a node, so the few launches with attributes use no graph. */
        if (config->numAttrs == 0 &&
            launcher_try(launcher, cu, config, function, params, may_make) == CUDA_SUCCESS)
                return CUDA_SUCCESS;
        return cu->cuLaunchKernelEx(config, function, params, NULL);
}

void launcher_clear(Launcher *launcher, const Driver *cu) {
        for (unsigned i = 0; i < LAUNCHER_GRAPHS; ++i)
                graph_clear(&launcher->graphs[i], cu);
        launcher->n = 0;
}
