/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_RUNNER_STATE_H
#define GPUQ_WORKER_RUNNER_STATE_H

/*
 * What runner.c and runner_issue.c have of each other.
 */

#include "worker/runner.h"

/** runner_find() - waiting or in flight. Return: NULL: none of that id. */
Job *runner_find(const Runner *runner, uint64_t id);
/** runner_let_go() - it waits no longer: issued, or refused; those behind it may be ready. */
void runner_let_go(Runner *runner, Job *job);
/** runner_end() - of one in no batch and not in runner->ready; one that was refused waits for those before it. */
void runner_end(Runner *runner, Job *job);
/** runner_end_batch() - all its jobs, whatever became of them. */
void runner_end_batch(Runner *runner, Batch *batch);
/** runner_is_quiet() - what is not urgent lets what is in flight end first: a trial, or what one waits for. */
bool runner_is_quiet(const Runner *runner, uint64_t now_ns);
/** runner_issue_all() - whatever is ready and may be issued. @ret_any: whether anything was. Return: 0, or FAILURE_E_FAULT. */
int runner_issue_all(Runner *runner, uint64_t now_ns, bool *ret_any);

#endif
