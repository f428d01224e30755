/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GRAPH_H
#define GPUQ_WORKER_GRAPH_H

/*
 * Graph
 *
 * A program of two steps or more as a CUDA graph. Instantiating costs some 5 us per step, so graphs are
 * kept by shape and patched with the addresses and values of each run that differ from the previous
 * run. CUDA allows patching and launching an exec again while it runs; launches in flight do not
 * change. Runs on one stream, which follow each other, therefore share one graph.
 *
 * The driver reserves memory for every 43 graphs, launcher graphs included, however many steps they
 * have (4 MiB on an H200), and keeps it; before that it waits for every running kernel. So memory for
 * all graphs is reserved before any kernel runs, and there are never more.
 */

#include <sys/queue.h>

#include "worker/program.h"
#include "worker/stream.h"

#define GRAPHS_MAX        64u
#define GRAPH_STEPS       16u /* of those in reserve: from 32 on they take more */
#define GRAPH_N_ADDRESSES 8u /* of a program with more buffers each run's arguments are looked at */

typedef struct Graph {
        TAILQ_ENTRY(Graph) link; /* graphs->list */
        CUgraphExec exec;
        CUgraph graph; /* kept: the nodes are its own */
        CUgraphNode *nodes;
        uint8_t *key;        /* its shape, followed by the latest values of its steps */
        size_t n_key;        /* bytes of the shape */
        uint64_t hash;       /* of the shape */
        uint64_t generation; /* graphs->generation when these values were set */
        /* The number of the steps' program, if it was kept and has few buffers; else 0. */
        uint64_t program;
        CUdeviceptr addresses[GRAPH_N_ADDRESSES]; /* that program's addresses at that time */
        const Stream *stream;                     /* of its runs */
        unsigned n_busy;                          /* runs that have not ended */
} Graph;

typedef struct Graphs {
        Context *context;
        TAILQ_HEAD(GraphsList, Graph) list; /* the most recently used first */
        unsigned n;
        /* Like a graph's key, for the requested run; memory is reused. */
        uint8_t *wanted;
        size_t n_wanted_room;
        /* Of addresses: addresses of an earlier generation may be reused for other memory. */
        uint64_t generation;
        uint64_t n_made, n_reused, n_evicted; /* counts of runs, evictions excepted */
} Graphs;

/** graphs_init() */
void graphs_init(Graphs *graphs, Context *context);
/**
 * graphs_reserve() - reserve GPU memory for all graphs, with graphs of @function, which is not run
 *
 * Without memory it reserves less.
 */
void graphs_reserve(const Graphs *graphs, CUfunction function, void **params);
/** graphs_forget_addresses() - memory was mapped or will be unmapped: an address in a graph may mean other memory. */
void graphs_forget_addresses(Graphs *graphs);
/** graphs_clear() - free all graphs; all runs must have ended. */
void graphs_clear(Graphs *graphs);
/**
 * graphs_take() - a graph of this program, patched, for one run on @stream
 *
 * Return: 0; FAILURE_E_SET if no graph is possible: run the steps singly;
 * FAILURE_E_FAULT; or -ENOMEM.
 */
int graphs_take(Graphs *graphs, const Program *program, const Stream *stream, Graph **ret_graph,
                Failure *failure);
/** graph_release() - a run of the graph has ended; NULL is fine. */
void graph_release(Graph *graph);

/** graph_key_room() - bytes of a program's shape. */
size_t graph_key_room(const Program *program);
/** graph_key() - the shape: all parts of a program that patching cannot change. @key: zeroed memory. */
void graph_key(const Program *program, uint8_t *key);

#endif
