/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PLACE_H
#define GPUQ_SUPERVISOR_PLACE_H

/*
 * Place
 *
 * Where an unfinished job is: behind other jobs, in a queue, waiting for a module, in
 * flight, or about to end. Moves it from one to the next, with those behind it. The
 * scheduler decides when a job leaves its queue.
 */

#include "executor.h"
#include "job.h"
#include "module.h"

/** place_consider() - queue a WAITING job if nothing keeps it from running. */
void place_consider(Job *job);
/** place_consider_all() - those that waited for a device: devices are known now. */
void place_consider_all(Engine *engine);
/** place_withdraw() - take it out of whichever list it waits in. */
void place_withdraw(Job *job);
/** place_alone() - a QUEUED job is to run with nothing beside it. */
void place_alone(Job *job);
/** place_park() - a QUEUED job waits until its module is loaded. */
void place_park(Job *job, Instance *instance);

/** place_run() - a queued job goes in flight. Return: 0, or -ENOMEM: it is in no list. */
int place_run(Job *job, Executor *executor);
/** place_leave() - a RUNNING job is in flight no more: settle what it cost. */
void place_leave(Job *job);
/** place_return() - a RUNNING job goes back to WAITING, to run @alone or not. */
void place_return(Job *job, bool alone);
/** place_recall() - jobs that were not sent yet go back untouched. */
void place_recall(Executor *executor);

/** place_end_soon() - the job ends so, or by itself: once a RUNNING one has stopped, else by ending_run(). Consumes @failure. */
void place_end_soon(Job *job, JobState state, Failure *failure);
/** place_let_go() - it ended: those behind it go on, or end too if they depend on its success. */
void place_let_go(Job *job);

#endif
