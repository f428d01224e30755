/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUBMISSION_H
#define GPUQ_SUPERVISOR_SUBMISSION_H

/*
 * Submission
 *
 * How jobs enter the tables, and how they leave with their submitter.
 */

#include "base.h"
#include "job.h"
#include "submitter.h"

/**
 * submission_accept() - add a job that passed its checks, and queue it when it has no predecessors
 * @known: the ledger's record of it; its slot is LEDGER_NONE for a new job
 *
 * Return: NULL, or why it was refused.
 */
Failure *submission_accept(Submitter *submitter, const JobSpec *spec, const LedgerJob *known);
/**
 * submission_settle() - all jobs were submitted again: jobs that were in workers of the previous
 * supervisor are retried, or end
 */
void submission_settle(Submitter *submitter);
/**
 * submission_refuse() - job @id failed its checks and ends with @failure, which is consumed
 *
 * Return: 0, or -ENOMEM: no end is reported.
 */
int submission_refuse(Submitter *submitter, uint64_t id, Failure *failure);
/** submission_recall() - report the end of a job that ended under an earlier supervisor. Return: 0, or -ENOMEM. */
int submission_recall(Submitter *submitter, const LedgerJob *known);
/**
 * submission_close() - cancel the submitter's jobs and unload its modules; it gets no more
 * callbacks
 *
 * Repeating it is harmless.
 */
void submission_close(Submitter *submitter);

#endif
