/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BENCH_STATS_H
#define GPUQ_BENCH_STATS_H

/*
 * Stats
 *
 * What the processes of a phase measured, taken together.
 */

#include "loop.h"

typedef struct Stats {
        uint64_t n_jobs;
        double seconds; /* from the first process's beginning to the last job's end */
        double p50_us;
        double p99_us;
} Stats;

/** stats_make() - of @n reports with a job at least in all. */
void stats_make(const LoopReport *reports, unsigned n, Stats *ret_stats);

#endif
