/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PLACE_H
#define GPUQ_SUPERVISOR_PLACE_H

/*
 * Place
 *
 * Where an unfinished job is: behind other jobs, in a queue, waiting for a module, in flight, or
 * about to end. This module moves a job and its successors from one place to the next. The scheduler
 * decides when a job leaves its queue.
 */

#include "executor.h"
#include "job.h"
#include "module.h"

/** place_consider() - queue a WAITING job if nothing blocks it. */
void place_consider(Job *job);
/** place_consider_all() - devices are known now: place the jobs that waited for one. */
void place_consider_all(Engine *engine);
/** place_withdraw() - take the job out of the list it waits in. */
void place_withdraw(Job *job);
/** place_go_home() - a job that waits away from its data (away.h) waits there instead. Return: false: it is not away. */
bool place_go_home(Job *job);
/** place_alone() - a QUEUED job must run alone. */
void place_alone(Job *job);
/** place_park() - a QUEUED job waits until its module is loaded. */
void place_park(Job *job, Instance *instance);

/** place_run() - a queued job goes in flight. Return: 0, or -ENOMEM: it is in no list. */
int place_run(Job *job, Executor *executor);
/** place_adopt() - a new job that the executor has taken from a lease is RUNNING there. */
void place_adopt(Job *job, Executor *executor);
/** place_leave() - a RUNNING job leaves its executor: settle its cost. */
void place_leave(Job *job);
/** place_return() - a RUNNING job goes back to WAITING, to run alone if @alone. */
void place_return(Job *job, bool alone);
/** place_has_running_follower() - a job that must run after it is in flight, or may be; then it cannot go back. */
bool place_has_running_follower(const Job *job);
/** place_recall() - jobs that were not sent yet go back unchanged. */
void place_recall(Executor *executor);

/**
 * place_end_soon() - decide the job's end
 *
 * A RUNNING job ends when it has stopped, another in backlog_run(); a job that ends by itself before
 * keeps its own result. Consumes @failure.
 */
void place_end_soon(Job *job, JobState state, Failure *failure);
/** place_stop() - end a RUNNING job with its worker, unless it is behind others: follow.h comes back to it. */
void place_stop(Job *job);

#endif
