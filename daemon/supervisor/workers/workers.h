/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKERS_ROOM_H
#define GPUQ_SUPERVISOR_WORKERS_ROOM_H

/*
 * Workers: the room's public header
 *
 * Owns the supervisor's view of the worker processes: their channels, the messages in both
 * directions, their start and end, and eviction when a device has no memory for one more. It may call
 * jobs/ and the rooms below; jobs/ reaches it through ExecutorOps. It promises that every message of
 * a worker is checked, that each worker gets a bounded part of each turn of the loop, that a worker
 * that breaks the protocol or does not answer is killed, and that jobs/ learns of each end once, when
 * that worker can no longer write into an arena.
 */

#include "pool.h"
#include "worker.h"

/** workers_init() - in zeroed memory; from now on the engine can reach its workers. Return: 0, or -ENOMEM. */
int workers_init(Workers *workers, Engine *engine);
/** workers_configure() - another configuration holds: its spare workers replace the present ones. */
void workers_configure(Workers *workers);
/** workers_stop() - ask all workers to end. */
void workers_stop(Workers *workers);
/** workers_close() - at the end of the program: free all workers; their jobs go back. */
void workers_close(Workers *workers);

/** workers_spawned() - the keeper started this worker; unknown ids are fine. */
void workers_spawned(Workers *workers, uint32_t id, int32_t pid);
/** workers_exited() - the keeper saw it end; unknown ids are fine. @text: why it could not start, or "". */
void workers_exited(Workers *workers, uint32_t id, int status, const char *text);

/** workers_fini() - call it once the loop has run. */
void workers_fini(Workers *workers);

/* In each turn of the loop */

/** workers_read() - read the workers that are read without their bell. */
void workers_read(Workers *workers);
/**
 * workers_flush() - write queued messages
 *
 * Return: false: the loop must not sleep, because a worker has more to read.
 */
bool workers_flush(Workers *workers, bool may_sleep);
/** workers_tick() - called periodically: handles workers that are idle for long, hang, or do not start. */
void workers_tick(Workers *workers, uint64_t now_ns);

#endif
