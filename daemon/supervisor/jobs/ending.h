/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ENDING_H
#define GPUQ_SUPERVISOR_ENDING_H

/*
 * Ending
 *
 * The one way a job ends, and all that follows from it: its place, charges,
 * arenas and modules go back, its client is told, those that wait for it go on,
 * those that depend on its success fail.
 */

#include "job.h"

typedef struct Engine Engine;

/** ending_done() - it ran and is well. */
void ending_done(Job *job);
/** ending_fail() - FAILED; consumes @failure. */
void ending_fail(Job *job, Failure *failure);
/** ending_cancel() - CANCELLED; consumes @failure. */
void ending_cancel(Job *job, Failure *failure);
/** ending_doom() - ends so, or by itself, soon: a RUNNING job that its client or its timeout ends. */
void ending_doom(Job *job, JobState state, Failure *failure);
/** ending_doom_late() - a RUNNING job exceeded its timeout: it ends so when its worker has stopped. Return: false: it is doomed already. */
bool ending_doom_late(Job *job);
/** ending_run() - the dependents of those that failed. */
void ending_run(Engine *engine);

#endif
