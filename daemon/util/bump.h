/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_BUMP_H
#define GPUQ_UTIL_BUMP_H

/*
 * Bump
 *
 * Memory for unpacking one message: allocated from chunks, freed all at once. A few bytes of
 * protobuf can require a hundred times as much memory, so there is a limit, at which unpacking
 * fails like that of any other broken message.
 */

#include <protobuf-c/protobuf-c.h>

#include "util/macro.h"

#define BUMP_MAX   (64u << 20) /* bytes for one message */
#define BUMP_CHUNK (64u << 10) /* bytes kept from message to message */

typedef struct Bump Bump;

/** bump_new() - Return: 0, or -ENOMEM. */
int bump_new(Bump **ret_bump);
/** bump_free() - NULL is fine. Return: NULL. */
Bump *bump_free(Bump *bump);
DEFINE_CLEANUP(Bump, bump_free)
/** bump_take() - memory until bump_reset(). Return: NULL: there is none, or the message takes too much. */
void *bump_take(Bump *bump, size_t size);
/** bump_allocator() - the same for protobuf-c; its free does nothing. */
ProtobufCAllocator *bump_allocator(Bump *bump);
/** bump_reset() - everything that was handed out is gone. */
void bump_reset(Bump *bump);

#endif
