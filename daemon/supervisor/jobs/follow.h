/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_FOLLOW_H
#define GPUQ_SUPERVISOR_FOLLOW_H

/*
 * Follow
 *
 * What the start and the end of a job mean for later jobs. A job may have as many followers as its user
 * has jobs: the first FOLLOW_AT_ONCE are looked at where the job starts or ends, the others in
 * follow_step(), which the backlog calls in the next turns.
 */

#include "job.h"

#define FOLLOW_AT_ONCE 64u

/** follow_started() - the job is in flight: later jobs that need no more may go into its worker. */
void follow_started(Job *job);
/** follow_ended() - the job ended: later jobs go on, or end too if they depend on its success. */
void follow_ended(Job *job);
/** follow_may_start() - the jobs before it by buffers have ended, or are in flight in this worker. */
bool follow_may_start(Job *job, const Executor *executor);
/** follow_step() - look at one follower of a person's jobs. Return: false: none is left. */
bool follow_step(User *person);

#endif
