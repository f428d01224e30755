/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BENCH_LOOP_H
#define GPUQ_BENCH_LOOP_H

/*
 * Loop
 *
 * One process's jobs: keeps so many in flight until the time is up, and checks
 * them. Of each job on host memory the first, middle and last element, and all of each 256th;
 * each gets an input of its own, so that a stale result shows. Of jobs on the
 * device every element of the last result of each slot. It ends the process when something is wrong.
 */

#include "bench.h"

#define LOOP_SAMPLES_MAX 16384

typedef struct LoopReport {
        uint64_t n_jobs;
        uint64_t first_ns; /* when it began */
        uint64_t last_ns;  /* when the last job ended */
        uint32_t samples
                [LOOP_SAMPLES_MAX]; /* in LOOP_SAMPLE_NS, from start to end, the latest so many */
} LoopReport;

/** LOOP_SAMPLE_NS - what a sample counts: fine enough for 8 us, wide enough for minutes. */
#define LOOP_SAMPLE_NS 64

typedef struct Loop Loop;

/** loop_new() - opens the contender and fills the inputs. @process: its number. */
Loop *loop_new(const Contender *contender, const BenchOptions *options, unsigned process);
/** loop_prepare() - the next run's jobs have their data there. */
void loop_prepare(Loop *loop, BenchData data);
/** loop_run() - so many in flight until @until_ns; one round if that is over. @report: may be NULL. */
void loop_run(Loop *loop, unsigned n_in_flight, uint64_t until_ns, LoopReport *report);
void loop_free(Loop *loop);

#endif
