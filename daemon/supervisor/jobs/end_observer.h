/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_END_OBSERVER_H
#define GPUQ_SUPERVISOR_END_OBSERVER_H

/*
 * End observer
 *
 * Learns how each job ended, for the history. Embedded in its owner, which sets engine->ends.observer.
 */

#include "base.h"

typedef struct EndObserver EndObserver;
typedef struct Job Job;

struct EndObserver {
        /* The job still has its buffers and kernels. Called for every job: it must neither block nor
         * allocate. */
        void (*job_ended)(EndObserver *observer, const Job *job, const LedgerEnd *end);
        /* @n jobs like this one were done; the times are sums. */
        void (*jobs_done)(EndObserver *observer, const Job *job, uint64_t n, uint64_t waited_us,
                          uint64_t ran_us);
};

#endif
