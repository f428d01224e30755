/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEPENDENCY_H
#define GPUQ_SUPERVISOR_DEPENDENCY_H

/*
 * Dependency
 *
 * Keeps the edges between jobs. An edge the client asked for holds until the
 * earlier job is done; one derived from buffers holds until the earlier one is in
 * flight, because the worker then keeps the order. A job whose last blocking edge
 * goes is handed to the scheduler.
 */

#include "job.h"

/** dependency_derive() - put a new job behind those of its session whose buffers it meets. Return: 0, or -ENOMEM. */
int dependency_derive(Job *job);
/** dependency_started() - it is in flight now. */
void dependency_started(Job *job);
/** dependency_returned() - it is WAITING again: those behind it wait again too. */
void dependency_returned(Job *job);
/** dependency_is_behind() - whether a job that its buffers put before it has not ended. */
bool dependency_is_behind(const Job *job);
/** dependency_ended() - it ended; when not well, dependents are doomed. */
void dependency_ended(Job *job);

#endif
