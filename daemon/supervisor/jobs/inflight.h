/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_INFLIGHT_H
#define GPUQ_SUPERVISOR_INFLIGHT_H

/*
 * In flight
 *
 * The jobs in one executor, from the moment they are handed to it. Handing over a job gives the
 * executor the arenas that the job names, and adds its expected time to the total.
 */

#include "executor.h"
#include "job.h"

/** inflight_send() - hand a job to the executor; arenas that it lacks go first. Return: 0, or -ENOMEM. */
int inflight_send(Executor *executor, Job *job);
/** inflight_adopt() - a job that the executor has taken from a lease. */
void inflight_adopt(Executor *executor, Job *job);
/** inflight_unbound() - the job is overdue: its expected time does not limit what is in flight any more. */
void inflight_unbound(Executor *executor, Job *job);
/** inflight_note_long() - a job of this class turned out long: so will those that are in flight. */
void inflight_note_long(Executor *executor, uint64_t class, uint64_t expected_ns);
/** inflight_remove() - the job is no longer in flight. */
void inflight_remove(Executor *executor, Job *job);
/** inflight_find() - a job that was sent to the executor. Return: NULL: there is none. */
Job *inflight_find(const Executor *executor, uint64_t id);
/**
 * inflight_note_variables() - the job may have changed variables of its modules, which exist in
 * this executor alone
 */
void inflight_note_variables(Executor *executor, const Job *job);
/** inflight_set_phase() - the phase that the executor reports for the job after it stopped. */
void inflight_set_phase(Executor *executor, Job *job, FaultPhase phase);
/** inflight_has_begun() - by inflight_set_phase(), one of its jobs may have started. */
bool inflight_has_begun(const Executor *executor);
/** inflight_waits_for_stop() - a job that must end, with no other job before it, waits for the worker to stop. */
bool inflight_waits_for_stop(const Executor *executor);

#endif
