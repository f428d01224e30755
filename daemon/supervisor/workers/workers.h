/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKERS_ROOM_H
#define GPUQ_SUPERVISOR_WORKERS_ROOM_H

/*
 * Workers: the room's public header
 *
 * Owns the worker processes as seen from the supervisor: their channels, what is
 * sent to them and what they say, their start and their end, and which of them is
 * stopped when a device has no memory for one more. It may call jobs/ and what is
 * below; jobs/ reaches it through ExecutorOps. It promises that whatever a worker says is
 * checked, that each worker gets a bounded part of each turn of the loop, that a worker
 * that breaks the rules or does not answer is killed, and that jobs/ hears of each
 * end once, when nothing of that worker can still write into an arena.
 */

#include "pool.h"
#include "worker.h"

/** workers_init() - in zeroed memory; the engine reaches its workers from now on. Return: 0, or -ENOMEM. */
int workers_init(Workers *workers, Engine *engine);
/** workers_stop() - ask all to end. */
void workers_stop(Workers *workers);
/** workers_close() - at the end of the program: forget all; their jobs go back. */
void workers_close(Workers *workers);

/** workers_spawned() - the keeper started this one; unknown ones are fine. */
void workers_spawned(Workers *workers, uint32_t id, int32_t pid);
/** workers_exited() - the keeper saw it end; unknown ones are fine. @text: why it could not start, or "". */
void workers_exited(Workers *workers, uint32_t id, int status, const char *text);

/** workers_fini() - once the loop has run. */
void workers_fini(Workers *workers);

/* In each turn of the loop */

/** workers_read() - take what those said that are read without their bell. */
void workers_read(Workers *workers);
/** workers_flush() - write what waits for them. Return: false: the loop must not sleep, one has more to say. */
bool workers_flush(Workers *workers, bool may_sleep);
/** workers_tick() - now and then: those that are idle for long, hang, or do not start. */
void workers_tick(Workers *workers, uint64_t now_ns);

#endif
