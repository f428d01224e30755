/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RECOVERY_H
#define GPUQ_SUPERVISOR_RECOVERY_H

/*
 * Recovery
 *
 * A worker ended: carries out what fault.h says about each job it had in flight,
 * and finds the words.
 */

#include "base.h"
#include "executor.h"

/**
 * recovery_run() - empty the executor's list of jobs in flight, by executor->cause and job->phase
 * @failure: what the worker or the keeper said of its end, or NULL
 * @output:  what the guilty kernel printed, or NULL
 */
void recovery_run(Executor *executor, FaultCause cause, const Failure *failure, const char *output);
/** recovery_run_unattached() - the worker that had this WAITING job ended with the supervisor before us: again, or ended. */
void recovery_run_unattached(Job *job);

#endif
