/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_REPORT_H
#define GPUQ_WORKER_REPORT_H

/*
 * Report
 *
 * The worker's messages to the supervisor. All functions return 0 or the result of outbox_send().
 */

#include "worker/memory.h"
#include "worker/module.h"
#include "worker/outbox.h"
#include "worker/runner.h"

/** report_ready() - the context exists, or why not. @n_free: bytes of device memory. */
int report_ready(Outbox *outbox, uint64_t n_free, const Failure *failure);
/** report_arena() - created, with its descriptor, or failed; a host arena that is ready is not reported. */
int report_arena(Outbox *outbox, Arena *arena);
/** report_module() - loaded, with its kernels, or failed. */
int report_module(Outbox *outbox, const Module *module);
/** report_ends() - every job in a list, in their order. */
int report_ends(Outbox *outbox, const struct JobList *ended);
/** report_late() - the job exceeded its timeout. */
int report_late(Outbox *outbox, const Job *job);
/** report_stopped() - unfinished jobs. @failure: the fault, or none. @output: assertion text, may be NULL. */
int report_stopped(Outbox *outbox, const Runner *runner, const Failure *failure,
                   const char *output);
/** report_stats() - @use: of device memory. */
int report_stats(Outbox *outbox, const MemoryUse *use, const Runner *runner);

#endif
