/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_QUIESCE_H
#define GPUQ_WORKER_QUIESCE_H

/*
 * Quiesce
 *
 * Calls that wait for every running kernel and stop all launches meanwhile are queued here, in order,
 * until nothing runs (a quiesce point). While a call is queued, no new job is issued, unless work that
 * was issued before it turns out to take long: then nothing is gained by holding the others up. Once
 * that work has ended, no job is issued until the call has been made, however long the jobs take that
 * were issued meanwhile. Many queued calls hold memory, so they stop new jobs at once. Pure.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define QUIESCE_LONG_NS                                                                            \
        UINT64_C(20000000) /* since it was issued: older work that takes longer holds nothing up */
#define QUIESCE_TASKS_MAX 64u /* queued tasks that hold new jobs whatever runs */

typedef struct QuiesceTask QuiesceTask;
/* May free the task. Return: 0 or FAILURE_E_FAULT. */
typedef int (*QuiesceFunc)(QuiesceTask *task, void *userdata);

struct QuiesceTask {
        STAILQ_ENTRY(QuiesceTask) link; /* quiesce->tasks */
        QuiesceFunc func;
        void *userdata;
        bool waiting;
};

typedef struct Quiesce {
        STAILQ_HEAD(, QuiesceTask) tasks;
        uint64_t since_ns; /* since when a call is queued; 0: none, or not seen yet */
        unsigned n_tasks;
} Quiesce;

/** quiesce_init() */
void quiesce_init(Quiesce *quiesce);
/** quiesce_add() - run @task at the next quiesce point; at most once. */
void quiesce_add(Quiesce *quiesce, QuiesceTask *task);
/** quiesce_remove() - remove the task if it is queued. */
void quiesce_remove(Quiesce *quiesce, QuiesceTask *task);
/** quiesce_run() - run all queued tasks. Return: 0 or FAILURE_E_FAULT. */
int quiesce_run(Quiesce *quiesce);
/**
 * quiesce_holds() - no new job may be issued now
 * @oldest_ns: when the oldest work in flight was issued; 0: there is none
 *
 * The first question after a call is queued begins its time.
 */
bool quiesce_holds(Quiesce *quiesce, uint64_t oldest_ns, uint64_t now_ns);
/** quiesce_is_wanted() - a task is queued. */
bool quiesce_is_wanted(const Quiesce *quiesce);

#endif
