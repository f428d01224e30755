/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEPENDENCY_H
#define GPUQ_SUPERVISOR_DEPENDENCY_H

/*
 * Dependency
 *
 * The edges between jobs. An edge that the client asked for blocks until the earlier
 * job is done. One derived from buffers blocks until the earlier job is in flight,
 * because the worker then keeps the order. place.h moves the jobs.
 */

#include "job.h"

/** dependency_derive() - put a new job behind those of its session whose buffers it meets. Return: 0, or -ENOMEM. */
int dependency_derive(Job *job);
/** dependency_derive_again() - one before it ended while others before that one have not: it is behind those now. Return: 0, or -ENOMEM. */
int dependency_derive_again(Job *job);
/** dependency_block() - the later job waits for this again. Return: false: it does already. */
bool dependency_block(JobEdge *edge);
/** dependency_unblock() - the later job need not wait for this any more. Twice is harmless. */
void dependency_unblock(JobEdge *edge);
/** dependency_end() - its earlier job ended. */
void dependency_end(JobEdge *edge);
/** dependency_is_behind() - whether a job that its buffers put before it has not ended. */
bool dependency_is_behind(const Job *job);

#endif
