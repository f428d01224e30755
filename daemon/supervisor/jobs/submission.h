/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUBMISSION_H
#define GPUQ_SUPERVISOR_SUBMISSION_H

/*
 * Submission
 *
 * How jobs come in, and how they go with the submitter that they came from.
 */

#include "base.h"
#include "job.h"
#include "submitter.h"

/**
 * submission_accept() - a job that was checked: it is in the tables, and queued when nothing has to run before it
 * @known: what the ledger says of it; its slot is LEDGER_NONE for a job that is new
 *
 * Return: NULL, or why not.
 */
Failure *submission_accept(Submitter *submitter, const JobSpec *spec, const LedgerJob *known);
/** submission_settle() - all was submitted again: jobs that were in workers of the supervisor before run again, or end. */
void submission_settle(Submitter *submitter);
/** submission_refuse() - job @id failed its checks: it ends so. Consumes @failure. Return: 0, or -ENOMEM: nobody is told. */
int submission_refuse(Submitter *submitter, uint64_t id, Failure *failure);
/** submission_recall() - a job that ended under a supervisor before this one is told again. Return: 0, or -ENOMEM. */
int submission_recall(Submitter *submitter, const LedgerJob *known);
/** submission_close() - the submitter's jobs are cancelled and its modules unloaded, and it is told nothing. Twice is harmless. */
void submission_close(Submitter *submitter);

#endif
