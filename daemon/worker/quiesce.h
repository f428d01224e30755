/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_QUIESCE_H
#define GPUQ_WORKER_QUIESCE_H

/*
 * Quiesce
 *
 * Calls that wait for every running kernel and stop all launches meanwhile are queued here, in order,
 * until nothing runs (a quiesce point). While a call is queued, no new job is issued.
 */

#include <stdbool.h>
#include <sys/queue.h>

typedef struct QuiesceTask QuiesceTask;
/* May free the task. Return: 0 or FAILURE_E_FAULT. */
typedef int (*QuiesceFunc)(QuiesceTask *task, void *userdata);

struct QuiesceTask {
        STAILQ_ENTRY(QuiesceTask) link; /* quiesce->tasks */
        QuiesceFunc func;
        void *userdata;
        const char *what; /* "loading a module", a constant */
        bool waiting;
};

typedef struct Quiesce {
        STAILQ_HEAD(, QuiesceTask) tasks;
} Quiesce;

/** quiesce_init() */
void quiesce_init(Quiesce *quiesce);
/** quiesce_add() - run @task at the next quiesce point; at most once. */
void quiesce_add(Quiesce *quiesce, QuiesceTask *task);
/** quiesce_remove() - remove the task if it is queued. */
void quiesce_remove(Quiesce *quiesce, QuiesceTask *task);
/** quiesce_run() - run all queued tasks. Return: 0 or FAILURE_E_FAULT. */
int quiesce_run(Quiesce *quiesce);
/** quiesce_waiting() - what the first queued task does, or NULL. */
const char *quiesce_waiting(const Quiesce *quiesce);

#endif
