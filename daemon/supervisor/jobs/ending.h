/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ENDING_H
#define GPUQ_SUPERVISOR_ENDING_H

/*
 * Ending
 *
 * Every job ends here. The end returns the job's charges, arenas and modules and is reported to its
 * submitter. Jobs that wait for it go on, and jobs that depend on its success fail.
 */

#include "executor.h"
#include "job.h"

#define ENDING_ORPHAN_MS                                                                           \
        2000u /* time for which the running job of a dead client may still end by itself */

/** ending_done() - the job succeeded. */
void ending_done(Job *job);
/** ending_fail() - FAILED; consumes @failure. */
void ending_fail(Job *job, Failure *failure);
/** ending_cancelled() - why a job was cancelled; names the user only if it is not the job's owner. */
Failure *ending_cancelled(const User *owner, const User *by);
/** ending_cancel() - CANCELLED; consumes @failure. */
void ending_cancel(Job *job, Failure *failure);
/** ending_result() - the worker's result of the job. */
void ending_result(Job *job, const ExecutorResult *result);
/** ending_leased() - @n jobs like this one, which is in no table, were done by a lease; the times are sums. */
void ending_leased(const Job *job, uint64_t n, uint64_t waited_us, uint64_t ran_us);
/** ending_drop_orphans() - cancel its jobs whose submitter has been gone for ENDING_ORPHAN_MS. */
void ending_drop_orphans(Executor *executor, uint64_t now_ns);
/** ending_step() - end one of a person's jobs whose end is decided. Return: false: there is none. */
bool ending_step(User *person);

#endif
