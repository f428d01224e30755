/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ENDING_H
#define GPUQ_SUPERVISOR_ENDING_H

/*
 * Ending
 *
 * The one way a job ends, and all that follows from it: its charges, arenas and
 * modules go back, its submitter is told, the jobs that wait for it go on, and those
 * that depend on its success fail.
 */

#include "executor.h"
#include "job.h"

#define ENDING_ORPHAN_MS                                                                           \
        2000u /* so long the running job of a client that died may take to end by itself */

/** ending_done() - it ran and is well. */
void ending_done(Job *job);
/** ending_fail() - FAILED; consumes @failure. */
void ending_fail(Job *job, Failure *failure);
/** ending_cancelled() - why a job was cancelled; names the user only if it is not the job's owner. */
Failure *ending_cancelled(const User *owner, const User *by);
/** ending_cancel() - CANCELLED; consumes @failure. */
void ending_cancel(Job *job, Failure *failure);
/** ending_result() - its worker says so. */
void ending_result(Job *job, const ExecutorResult *result);
/** ending_drop_orphans() - cancel the jobs in it whose submitter has been gone for ENDING_ORPHAN_MS. */
void ending_drop_orphans(Executor *executor, uint64_t now_ns);
/** ending_run() - those that place_end_soon() told to end. */
void ending_run(Engine *engine);

#endif
