/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EXTENT_H
#define GPUQ_SUPERVISOR_EXTENT_H

/*
 * Extents
 *
 * Packs a job's buffers into one arena. Each range that the buffers cover becomes an extent, so that
 * overlapping buffers overlap in the same way afterwards. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gpuq.pb-c.h"

typedef struct Extent {
        uint64_t arena;
        uint64_t offset; /* in that arena */
        uint64_t length;
        uint64_t new_offset; /* set by extents_pack() */
        bool read;
        bool written;
} Extent;

/**
 * extents_of() - the ranges that a job's buffers cover, in order
 *
 * @extents: one entry per buffer suffices.
 *
 * Return: their number.
 */
size_t extents_of(const Gpuq__V1__Job *job, Extent *extents);
/**
 * extents_pack() - place the extents and the job's buffers in an arena 0
 *
 * Each offset keeps its remainder by 256 bytes.
 */
void extents_pack(Extent *extents, size_t n, Gpuq__V1__Job *job);
/** extents_size() - size of an arena that holds them; above 0. */
uint64_t extents_size(const Extent *extents, size_t n);
/** extents_find() - the extent that contains a buffer. Return: NULL: none. */
const Extent *extents_find(const Extent *extents, size_t n, const Gpuq__V1__Buffer *buffer);

#endif
