/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_INFLIGHT_H
#define GPUQ_SUPERVISOR_INFLIGHT_H

/*
 * In flight
 *
 * The jobs in one executor, from the moment they are handed to it: it is given the
 * arenas that they name, and what they are expected to take is summed up.
 */

#include "executor.h"
#include "job.h"

/** inflight_send() - hand the executor a job; arenas it lacks go first. Return: 0, or -ENOMEM. */
int inflight_send(Executor *executor, Job *job);
/** inflight_unbound() - the job is overdue: what it was expected to take bounds what is in flight no more. */
void inflight_unbound(Executor *executor, Job *job);
/** inflight_remove() - a job is in flight no more. */
void inflight_remove(Executor *executor, Job *job);
/** inflight_find() - a job that was sent to it. Return: NULL: there is none. */
Job *inflight_find(const Executor *executor, uint64_t id);
/** inflight_note_variables() - the job may have changed those of its modules, which live in this executor alone. */
void inflight_note_variables(Executor *executor, const Job *job);
/** inflight_set_phase() - how far the executor says that the job had come when it stopped. */
void inflight_set_phase(Executor *executor, Job *job, FaultPhase phase);
/** inflight_has_begun() - by inflight_set_phase(), one of its jobs may have run. */
bool inflight_has_begun(const Executor *executor);
/** inflight_waits_for_stop() - a job that is to end, and not behind others, waits for the worker to stop. */
bool inflight_waits_for_stop(const Executor *executor);

#endif
