/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SNAPSHOT_H
#define GPUQ_SUPERVISOR_SNAPSHOT_H

/*
 * Snapshot
 *
 * When reports are made: at most ten times a second, and only when somebody asks. A report is never older
 * than the request for it: a request that comes too early waits, and all that wait share the next
 * status. Each answer is part of its user's turn.
 */

#include <stdint.h>

#include <uv.h>

#include "jobs.h"
#include "report_state.h"

#define SNAPSHOT_NS 100000000ull

typedef struct Clients Clients;
typedef struct Session Session;

/** snapshot_init() - in zeroed memory. */
void snapshot_init(Snapshot *snapshot, uv_loop_t *loop);
/** snapshot_close() - the loop ends; the memory may go once its handles are closed. */
void snapshot_close(Snapshot *snapshot);
/** snapshot_ask_status() - answer StatusGet, maybe later. */
void snapshot_ask_status(Session *session, uint32_t serial);
/** snapshot_ask_queue() - answer QueueGet, maybe later. */
void snapshot_ask_queue(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get);
/** snapshot_take() - it is time: those who wait are answered in this turn or the next ones. */
void snapshot_take(Clients *clients, uint64_t now_ns);

#endif
