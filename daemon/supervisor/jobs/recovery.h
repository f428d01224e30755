/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RECOVERY_H
#define GPUQ_SUPERVISOR_RECOVERY_H

/*
 * Recovery
 *
 * A worker ended: carries out the verdict of fault.h on each job it had in flight, and writes the
 * error text.
 */

#include "base.h"
#include "executor.h"

/**
 * recovery_run() - empty the executor's list of jobs in flight, by @cause and job->phase
 * @failure: what the worker or the keeper reported, or NULL
 * @output:  what the guilty kernel printed, or NULL
 */
void recovery_run(Executor *executor, FaultCause cause, const Failure *failure, const char *output);
/**
 * recovery_run_unattached() - this WAITING job's worker ended with the previous supervisor: retry
 * the job, or end it
 */
void recovery_run_unattached(Job *job);

#endif
