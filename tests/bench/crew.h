/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BENCH_CREW_H
#define GPUQ_BENCH_CREW_H

/*
 * Crew
 *
 * The processes of one contender. They open once and go through all phases
 * together: everybody makes ready, everybody runs, everybody waits for the last.
 * What they measure is added up and printed, a line of JSON a phase. If one fails, all
 * are ended, and so is this program.
 */

#include "bench.h"

typedef struct CrewPhase {
        BenchData data;
        unsigned n_in_flight;
        double seconds;
} CrewPhase;

typedef struct CrewOptions {
        BenchOptions bench;
        const Contender *contender;
        unsigned n_processes;
        unsigned n_phases;
        CrewPhase phases[BENCH_PHASES_MAX];
        bool cold; /* no round before the clock runs: one of long spins takes longer than what is timed */
        bool hold; /* say {"ready": …} and wait for a line of stdin before each phase, and before the end */
} CrewOptions;

/** crew_run() - all phases. */
void crew_run(const CrewOptions *options);
/** crew_burst() - each process is there for one job of the first phase's kind: from the first fork to the last result. */
void crew_burst(const CrewOptions *options);

#endif
