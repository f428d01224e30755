/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_LAUNCHER_H
#define GPUQ_WORKER_LAUNCHER_H

/*
 * Launcher
 *
 * Launches on one stream. A graph of one kernel, patched with a launch's geometry and arguments, reaches
 * the device sooner than the launch itself: on an H200 it takes 2.0 us of calls instead of 3.6, and a
 * lone kernel's end is seen 1.7 us earlier. Patching in another function gains nothing, so there are a
 * few graphs. CUDA allows patching and launching an exec again while it runs; launches in flight do not
 * change. Runs of one exec follow each other, like all work on one stream.
 *
 * Memory for the largest number of graphs is reserved at the start (graphs_reserve()); other launches do
 * without.
 */

#include <stdbool.h>

#include "driver/driver.h"

#define LAUNCHER_GRAPHS 4u /* of a batch: what brings its data, its kernel, what takes it away */

/* Limit over all streams: the number for the streams of one priority. */
#define LAUNCHER_MAX 64u

typedef struct LauncherGraph {
        CUfunction function; /* of its latest launch; NULL: not created yet */
        CUgraph graph;       /* kept: the node is its own */
        CUgraphNode node;
        CUgraphExec exec;
} LauncherGraph;

/* Zeroed: no graph was created yet. */
typedef struct Launcher {
        LauncherGraph graphs[LAUNCHER_GRAPHS]; /* the most recently used first */
        unsigned n;                            /* how many of them exist */
} Launcher;

/**
 * launcher_launch() - like cuLaunchKernelEx(), which it calls if a graph cannot be used
 * @config: hStream must always be this launcher's stream
 * @may_make: whether a new graph may be created
 *
 * Return: CUDA's result; that of cuLaunchKernelEx() if the launch is impossible.
 */
CUresult launcher_launch(Launcher *launcher, const Driver *cu, const CUlaunchConfig *config,
                         CUfunction function, void **params, bool may_make);
/** launcher_clear() - forget all functions; launches may still be in flight. */
void launcher_clear(Launcher *launcher, const Driver *cu);

#endif
