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

#define SUBMISSION_AT_ONCE 256u /* jobs cancelled in the turn in which their submitter goes */

/**
 * submission_accept() - add a job that passed its checks, and queue it when it has no predecessors
 * @known: the ledger's record of it; its slot is LEDGER_NONE for a new job
 *
 * Return: NULL, or why it was refused.
 */
Failure *submission_accept(Submitter *submitter, const JobSpec *spec, const LedgerJob *known);
/** submission_adopt() - add a job that the executor runs already, whatever the limits. Return: 0, or -ENOMEM. */
int submission_adopt(Submitter *submitter, const JobSpec *spec, Executor *executor);
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
 * submission_close() - cancel the submitter's jobs and unload its modules; it gets no more callbacks but
 * one
 *
 * Return: true: it may be finished now; false: there are many jobs, and ops->closed() comes once it may.
 */
bool submission_close(Submitter *submitter);
/** submission_close_now() - the same at once, whatever the time. Repeating it is harmless. */
void submission_close_now(Submitter *submitter);
/** submission_step() - cancel one job of a person's submitters that are gone. Return: false: there is none. */
bool submission_step(User *person);

#endif
