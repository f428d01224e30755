/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DEPENDENCY_H
#define GPUQ_SUPERVISOR_DEPENDENCY_H

/*
 * Dependency
 *
 * The edges between jobs. An edge that the client asked for blocks until the earlier job is done. An
 * edge derived from buffers blocks until the earlier job is in flight, because the worker keeps the
 * order from then on; or until it ended, if the later job has many predecessors. place.h moves the
 * jobs.
 */

#include "job.h"

#define DEPENDENCY_FOLLOW_MAX 32u /* predecessors named to a worker */

/**
 * dependency_derive() - put a new job behind the jobs of its session whose buffers conflict with
 * its own
 *
 * Return: 0, or -ENOMEM.
 */
int dependency_derive(Job *job);
/**
 * dependency_renew() - wait again for earlier jobs that were in flight and are not any more
 *
 * Not when those return, because they may have many followers: before the later job moves on.
 * Return: whether nothing blocks it.
 */
bool dependency_renew(Job *job);
/** dependency_unblock() - the later job does not wait for this edge any more. Repeating it is harmless. */
void dependency_unblock(JobEdge *edge);
/** dependency_end() - the edge's earlier job ended. */
void dependency_end(JobEdge *edge);
/** dependency_is_behind() - whether a job that precedes it because of buffers has not ended. */
static inline bool dependency_is_behind(const Job *job) {
        return job->edges.n_behind > 0;
}
/** dependency_is_beside() - the jobs before it by buffers that are in flight are in this executor. */
bool dependency_is_beside(const Job *job, const Executor *executor);
/**
 * dependency_may_follow() - it may go in flight while jobs that precede it because of buffers are in
 * flight; a job behind many waits until they have ended
 */
static inline bool dependency_may_follow(const Job *job) {
        return job->edges.n_order <= DEPENDENCY_FOLLOW_MAX;
}

#endif
