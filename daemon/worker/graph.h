/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GRAPH_H
#define GPUQ_WORKER_GRAPH_H

/*
 * Graph
 *
 * A program of two steps or more as a CUDA graph: instantiating costs some 5 us
 * a step, so graphs are kept by shape and patched with the addresses and values
 * of each run, where these are not those of the run before. CUDA lets an exec be
 * patched and launched again while it runs, and what is on its way stays as it
 * was; so runs on one stream, which follow each other, share one.
 *
 * The driver takes memory for each 43 graphs, of launches too, however many steps
 * they have (4 MiB on an H200), and keeps it; before, it waits for every kernel that runs.
 * So what all of them need is had before any kernel runs, and there are never more.
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
        uint8_t *key;        /* its shape; behind it what its steps were given last */
        size_t n_key;        /* bytes of the shape */
        uint64_t hash;       /* of the shape */
        uint64_t generation; /* graphs->generation when its steps were given that */
        /* The number of the program whose steps, if it was kept and has few buffers; else 0. */
        uint64_t program;
        CUdeviceptr addresses[GRAPH_N_ADDRESSES]; /* that program's then */
        const Stream *stream;                     /* of its runs */
        unsigned n_busy;                          /* runs that have not ended */
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
/** graphs_reserve() - a GPU's memory for all, by graphs of @function, which is not run. Without memory it reserves less. */
void graphs_reserve(const Graphs *graphs, CUfunction function, void **params);
/** graphs_forget_addresses() - memory came or is about to go: other memory may lie at an address that a graph was given. */
void graphs_forget_addresses(Graphs *graphs);
/** graphs_clear() - forget all; none may have a run that has not ended. */
void graphs_clear(Graphs *graphs);
/**
 * graphs_take() - a graph of this program, patched, for one run on @stream
 *
 * Return: 0; FAILURE_E_SET if there can be none: run the steps singly;
 * FAILURE_E_FAULT; or -ENOMEM.
 */
int graphs_take(Graphs *graphs, const Program *program, const Stream *stream, Graph **ret_graph,
                Failure *failure);
/** graph_release() - a run of it has ended; NULL is fine. */
void graph_release(Graph *graph);

/** graph_key_room() - bytes of a program's shape. */
size_t graph_key_room(const Program *program);
/** graph_key() - the shape: all of a program that patching cannot change. @key: zeroed room. */
void graph_key(const Program *program, uint8_t *key);

#endif
