/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_LAUNCHER_H
#define GPUQ_WORKER_LAUNCHER_H

/*
 * Launcher
 *
 * Launches on one stream. A graph of one kernel that is given this launch's
 * geometry and arguments is with the device sooner than the launch itself: on an
 * H200 2.0 us of calls in place of 3.6, and a lone kernel's end is seen 1.7 us
 * earlier; given another function it is no quicker, so there are a few. CUDA
 * lets an exec be given other parameters and be launched again while it runs:
 * what is on its way stays as it was. Runs of one exec follow each other, as all
 * on one stream do.
 *
 * Memory for as many as there may be is had in reserve (graphs_reserve()); other
 * launches go without.
 */

#include <stdbool.h>

#include "driver/driver.h"

#define LAUNCHER_GRAPHS 4u /* of a batch: what brings its data, its kernel, what takes it away */

/* Of all streams together: as many as those of one priority have. */
#define LAUNCHER_MAX 64u

typedef struct LauncherGraph {
        CUfunction function; /* of its last launch; NULL: it is not made yet */
        CUgraph graph;       /* kept: the node is its own */
        CUgraphNode node;
        CUgraphExec exec;
} LauncherGraph;

/* Zeroed: none made yet. */
typedef struct Launcher {
        LauncherGraph graphs[LAUNCHER_GRAPHS]; /* the last used first */
        unsigned n;                            /* of them are made */
} Launcher;

/**
 * launcher_launch() - like cuLaunchKernelEx(), and by it where a graph would not do
 * @config: hStream is always the same one of this launcher
 * @may_make: a graph; else only those that there are serve
 *
 * Return: CUDA's answer, that of cuLaunchKernelEx() if the launch cannot be.
 */
CUresult launcher_launch(Launcher *launcher, const Driver *cu, const CUlaunchConfig *config,
                         CUfunction function, void **params, bool may_make);
/** launcher_clear() - forget all functions; launches may be on their way still. */
void launcher_clear(Launcher *launcher, const Driver *cu);

#endif
