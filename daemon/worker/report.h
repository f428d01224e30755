/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_REPORT_H
#define GPUQ_WORKER_REPORT_H

/*
 * Report
 *
 * What a worker tells the supervisor, as messages. All return 0 or what
 * outbox_send() does.
 */

#include "worker/module.h"
#include "worker/outbox.h"
#include "worker/runner.h"

/** report_ready() - the context is there, or why not. */
int report_ready(Outbox *outbox, const Failure *failure);
/** report_arena() - made, with its descriptor, or failed; a host arena that is ready is not told. */
int report_arena(Outbox *outbox, Arena *arena);
/** report_module() - loaded, with its kernels, or failed. */
int report_module(Outbox *outbox, const Module *module);
/** report_ends() - every job in a list, in their order. */
int report_ends(Outbox *outbox, const struct JobList *ended);
/** report_late() - ran past its timeout. */
int report_late(Outbox *outbox, const Job *job);
/** report_stopped() - what has not ended. @failure: the fault, or none. @output: assert text, may be NULL. */
int report_stopped(Outbox *outbox, const Runner *runner, const Failure *failure,
                   const char *output);
/** report_stats() - @n_bytes: of device memory. */
int report_stats(Outbox *outbox, uint64_t n_bytes, const Runner *runner);

#endif
