/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GRAPH_H
#define GPUQ_WORKER_GRAPH_H

/*
 * Graph
 *
 * A program of two steps or more as a CUDA graph: instantiating costs some 5 us
 * a step, so graphs are kept by shape and patched with the addresses and values
 * of each run, where these are not those of the run before. An exec runs once at
 * a time; as many are made as run together.
 */

#include <sys/queue.h>

#include "worker/program.h"

#define GRAPHS_MAX        64u /* kept while idle and busy ones together are no more */
#define GRAPH_N_ADDRESSES 8u /* of a program with more buffers each run's arguments are looked at */

typedef struct Graph {
        TAILQ_ENTRY(Graph) link; /* graphs->list */
        CUgraphExec exec;
        CUgraph graph; /* kept: the nodes are its own */
        CUgraphNode *nodes;
        uint8_t *key;        /* its shape; behind it what its steps were given last */
        size_t n_key;        /* bytes of the shape */
        uint64_t hash;       /* of the shape */
        uint64_t generation; /* graphs->generation when its steps were given that */
        /* The number of the program whose steps, if it was kept and has few buffers; else 0. */
        uint64_t program;
        CUdeviceptr addresses[GRAPH_N_ADDRESSES]; /* that program's then */
        bool busy;
} Graph;

typedef struct Graphs {
        Context *context;
        TAILQ_HEAD(GraphsList, Graph) list; /* the last used first */
        unsigned n;
        /* Like the key of a graph, of the run that is asked for; kept for the next. */
        uint8_t *wanted;
        size_t n_wanted_room;
        /* Of addresses: those given in an earlier one may mean something else. */
        uint64_t generation;
        uint64_t n_made, n_reused, n_evicted; /* runs, but for the last */
} Graphs;

/** graphs_init() */
void graphs_init(Graphs *graphs, Context *context);
/** graphs_forget_addresses() - memory came or is about to go: other memory may lie at an address that a graph was given. */
void graphs_forget_addresses(Graphs *graphs);
/** graphs_clear() - forget all; none may be busy. */
void graphs_clear(Graphs *graphs);
/**
 * graphs_take() - a graph of this program, patched, for one run
 *
 * Return: 0; FAILURE_E_SET if there can be none: run the steps singly;
 * FAILURE_E_FAULT; or -ENOMEM.
 */
int graphs_take(Graphs *graphs, const Program *program, Graph **ret_graph, Failure *failure);
/** graph_release() - its run has ended; NULL is fine. */
void graph_release(Graphs *graphs, Graph *graph);

/** graph_key_room() - bytes of a program's shape. */
size_t graph_key_room(const Program *program);
/** graph_key() - the shape: all of a program that patching cannot change. @key: zeroed room. */
void graph_key(const Program *program, uint8_t *key);

#endif
