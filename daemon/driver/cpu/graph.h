/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_GRAPH_H
#define GPUQ_CPU_GRAPH_H

/*
 * Graph
 *
 * Nodes and their predecessors. A node can only follow nodes that exist already, so the nodes can
 * run in the order in which they were added.
 */

#include "driver/cpu/launch.h"
#include "driver/cpu/work.h"

typedef enum GraphKind {
        GRAPH_KERNEL,
        GRAPH_COPY,
        GRAPH_FILL,
        GRAPH_CALL, /* captured */
        GRAPH_CHILD,
} GraphKind;

typedef struct CUgraphNode_st {
        uint32_t magic;
        struct CUgraph_st *graph;
        size_t index; /* in the graph */
        GraphKind kind;
        Work *work;
} GraphNode;

typedef struct CUgraph_st {
        uint32_t magic;
        uint64_t number; /* distinguishes graphs that had the same address */
        GraphNode **nodes;
        size_t n_nodes;
} Graph;

/** graph_check() - NULL, or anything that is not a graph. */
CUresult graph_check(const Graph *graph);
/** graph_node_check() - the same of a node. */
CUresult graph_node_check(const GraphNode *node);
/** graph_kernel_work() - a kernel node's work; @old: work whose attributes it keeps, or NULL. */
CUresult graph_kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, const Work *old, Work **ret_work);

/** graph_append() - a node for captured work, whose reference it takes over. */
CUresult graph_append(Graph *graph, Work *work);
/** graph_child_work() - all nodes of a graph, as one piece of work. */
CUresult graph_child_work(const Graph *graph, Work **ret_work);

#endif
