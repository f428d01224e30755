/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONTENTION_H
#define GPUQ_UTIL_CONTENTION_H

/*
 * Contention
 *
 * Whether other programs want the cores, so that a thread that waits should sleep. A thread that
 * polls uses up its time slice, and then waits milliseconds for the next one. A thread that sleeps
 * is woken within microseconds.
 *
 * The machine is busy once the thread has waited for a core although it was ready to run. Waits must
 * be as long as a time slice: gpuq's own clients poll too, but yield, so waits for them are short. It counts
 * as idle again when there are no more runnable threads than cores, or when it is time for a trial.
 * A trial is needed where the count is wrong or unknown, as in a container. A count that proved
 * wrong is asked for less and less often. Pure: time and counters come in as arguments.
 */

#include <stdbool.h>
#include <stdint.h>

#define CONTENTION_WAIT_NS      UINT64_C(1000000) /* a wait for a core that is worth noticing */
#define CONTENTION_PART         8u                /* and at least one part in so many of the time */
#define CONTENTION_SAMPLE_NS    UINT64_C(1000000) /* between two samples */
#define CONTENTION_COUNT_NS     UINT64_C(20000000)  /* from busy to the first count */
#define CONTENTION_COUNT_MAX_NS UINT64_C(160000000) /* if counts prove wrong */
#define CONTENTION_TRIAL_NS     UINT64_C(640000000) /* it polls again for a trial, whatever the count */

typedef struct Contention {
        bool is_busy;
        bool was_counted;     /* the last end of a busy time was a count's word */
        uint64_t since_ns;    /* when is_busy changed */
        uint64_t count_ns;    /* between two counts */
        uint64_t next_ns;     /* when the next count or sample is due */
        uint64_t sampled_ns;  /* the last sample; 0: none since the machine was busy */
        uint64_t n_waited_ns; /* its value */
} Contention;

/** contention_init() - the machine counts as idle. */
void contention_init(Contention *contention);
/** contention_is_busy() - is sleeping better than polling? */
bool contention_is_busy(const Contention *contention);
/** contention_lost() - another thread kept the core from this one for long. */
void contention_lost(Contention *contention, uint64_t now_ns);

/** contention_wants_sample() - is a sample due? Never while the machine is busy. */
bool contention_wants_sample(const Contention *contention, uint64_t now_ns);
/** contention_sample() - @n_waited_ns: how long this thread has ever waited for a core. */
void contention_sample(Contention *contention, uint64_t n_waited_ns, uint64_t now_ns);

/** contention_wants_count() - is a count of runnable threads due? Only while the machine is busy. */
bool contention_wants_count(const Contention *contention, uint64_t now_ns);
/** contention_count() - @n_runnable: the machine's runnable threads, this one too; 0: unknown. */
void contention_count(Contention *contention, unsigned n_runnable, unsigned n_cores,
                      uint64_t now_ns);

#endif
