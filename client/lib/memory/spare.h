/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_MEMORY_SPARE_H
#define GPUQ_MEMORY_SPARE_H

/*
 * Spare
 *
 * Arenas of large host buffers that were freed, kept for the next ones: a new
 * arena costs a round trip, fresh pages and a registration with CUDA, which for
 * some megabytes is ten times as much as clearing it. Bounded in bytes, in number
 * and in time; they count towards their user's quota, so all are released when it is reached.
 *
 * Expiry is checked whenever the client is used, without a thread of its own: a
 * program must stay free to fork(), which interpreters warn of where there are threads.
 */

#include "arena.h"

#define SPARE_MAX_BYTES (UINT64_C(128) << 20)
#define SPARE_MAX_N     16u
#define SPARE_MAX_US    (INT64_C(5) * 1000000) /* spares unused for longer are released */

/**
 * spare_put() - keep an arena of ours that has no buffer and is in no list
 *
 * The oldest spares may be released for it. Return: false if it is too large; it stays the caller's.
 */
bool spare_put(gpuq_client *client, Arena *arena);
/** spare_take() - a spare for @size bytes that it fits closely; it becomes the caller's. Return:
 * NULL if there is none. */
Arena *spare_take(gpuq_client *client, uint64_t size);
/** spare_release() - release all. Return: whether there were any. */
bool spare_release(gpuq_client *client);
/** spare_expire() - release those that were not used for too long. */
void spare_expire(gpuq_client *client);

#endif
