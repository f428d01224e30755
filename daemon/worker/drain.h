/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_DRAIN_H
#define GPUQ_WORKER_DRAIN_H

/*
 * Drain
 *
 * What may be done only when nothing runs: calls that wait for every running
 * kernel and stop all launches meanwhile. They wait here, in order; as long as
 * one does, no new job is issued.
 */

#include <stdbool.h>
#include <sys/queue.h>

typedef struct DrainTask DrainTask;
/* May free the task. Return: 0 or FAILURE_E_FAULT. */
typedef int (*DrainFunc)(DrainTask *task, void *userdata);

struct DrainTask {
        STAILQ_ENTRY(DrainTask) link; /* drain->tasks */
        DrainFunc func;
        void *userdata;
        const char *what; /* "loading a module", a constant */
        bool waiting;
};

typedef struct Drain {
        STAILQ_HEAD(, DrainTask) tasks;
} Drain;

/** drain_init() */
void drain_init(Drain *drain);
/** drain_add() - have @task done at the next drain point; at most once. */
void drain_add(Drain *drain, DrainTask *task);
/** drain_remove() - if it waits. */
void drain_remove(Drain *drain, DrainTask *task);
/** drain_run() - do all that waits. Return: 0 or FAILURE_E_FAULT. */
int drain_run(Drain *drain);
/** drain_waiting() - what the first one does, or NULL. */
const char *drain_waiting(const Drain *drain);

#endif
