/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SCHEDULER_H
#define GPUQ_SUPERVISOR_SCHEDULER_H

/*
 * Scheduler
 *
 * Which job runs next, and where: a user by fair share, then priority, then
 * sessions in turn, as far as the worker has room and the device's gate is open.
 * A job comes here when nothing has to run before it; what it costs does not
 * depend on how many wait.
 */

#include "device.h"
#include "job.h"

/** scheduler_consider() - queue a WAITING job if nothing keeps it from running. */
void scheduler_consider(Job *job);
/** scheduler_withdraw() - take it out of whichever list it waits in. */
void scheduler_withdraw(Job *job);
/** scheduler_place_all() - devices are known now. */
void scheduler_place_all(Engine *engine);
/** scheduler_wake() - this user may have something to dispatch here. */
void scheduler_wake(Lane *lane);
/** scheduler_run() - dispatch what can be. */
void scheduler_run(Engine *engine);
/** scheduler_tick() - now and then: users who were over their GPU seconds may go on. */
void scheduler_tick(Engine *engine, uint64_t now_ns);

/** scheduler_leave_worker() - a RUNNING job is in flight no more: settle what it cost. */
void scheduler_leave_worker(Job *job);
/** scheduler_return() - a RUNNING job goes back to WAITING, to run @alone or not. */
void scheduler_return(Job *job, bool alone);
/** scheduler_reason() - why a WAITING job waits. @n_before: jobs whose turn comes first, if QUEUED. */
void scheduler_reason(const Job *job, size_t n_before, char *text, size_t n_text);

#endif
