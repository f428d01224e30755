/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EXTENT_H
#define GPUQ_SUPERVISOR_EXTENT_H

/*
 * Extents
 *
 * Where a job's buffers go when they are packed into one arena: each stretch that
 * the buffers cover becomes an extent, so that buffers that overlapped overlap in
 * the same way. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"

typedef struct Extent {
        uint64_t arena;
        uint64_t offset; /* there */
        uint64_t length;
        uint64_t new_offset; /* set by extents_pack() */
        bool read;
        bool written;
} Extent;

/** extents_of() - what a job's buffers cover, in order. @extents: room for all buffers. Return: how many there are. */
size_t extents_of(const Gpuq__V1__Job *job, Extent *extents);
/** extents_pack() - place them in an arena 0, and the job's buffers with them. An offset keeps its place in a line of 256 bytes. */
void extents_pack(Extent *extents, size_t n, Gpuq__V1__Job *job);
/** extents_size() - of an arena that has room for them; above 0. */
uint64_t extents_size(const Extent *extents, size_t n);
/** extents_find() - the one that a buffer is in. Return: NULL: none. */
const Extent *extents_find(const Extent *extents, size_t n, const Gpuq__V1__Buffer *buffer);

#endif
