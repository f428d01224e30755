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

typedef struct ExtentSlice {
        uint64_t arena;
        uint64_t offset;
        uint64_t length;
        bool read;
        bool written;
        uint64_t new_offset; /* filled in */
} ExtentSlice;

typedef struct Extent {
        uint64_t arena;  /* where it was */
        uint64_t offset; /* there */
        uint64_t length;
        uint64_t new_offset; /* a stretch's place in a line of 256 bytes stays as it was */
        bool read;
        bool written;
} Extent;

/**
 * extents_pack() - find the extents and the slices' new places
 * @extents: room for @n_slices
 *
 * Return: how many extents there are, with the size of the new arena, which is above 0.
 */
size_t extents_pack(ExtentSlice *slices, size_t n_slices, Extent *extents, uint64_t *ret_size);

#endif
