/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_STAGING_H
#define GPUQ_WORKER_STAGING_H

/*
 * Staging
 *
 * The layout of a job's host buffers in its one scratch block, and the zeros and copies it needs.
 * Overlapping slices of one arena share their scratch, so a kernel sees one memory as it would in place.
 * Adjacent slices, with less than an alignment between them, stay adjacent, and inputs among them are one
 * copy. Pure: offsets only, no addresses.
 *
 * Before the job: zero the out slices, then copy the in and inout slices over them. After it: copy the
 * out and inout slices back. Slices in device memory are used where they are; out slices there that are
 * not read are zeroed. A slice that the job writes completely need not be zeroed in the client's own
 * memory. In scratch it is zeroed, because unwritten bytes would show another user's data.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGING_ALIGNMENT       256u
#define STAGING_APART_ALIGNMENT 512u /* of buffers with gaps between them: what textures need */

typedef enum StagingDirection {
        STAGING_IN,
        STAGING_OUT,
        STAGING_INOUT,
} StagingDirection;

typedef struct StagingBuffer {
        const void *arena; /* its identity; NULL: not staged */
        uint64_t offset;   /* bytes into it */
        uint64_t length;   /* bytes */
        StagingDirection direction;
        bool in_device; /* not staged */
        bool whole;     /* out, and completely written */
} StagingBuffer;

typedef struct StagingRange {
        const void *arena;
        uint64_t offset;  /* into the arena */
        uint64_t scratch; /* into the scratch block */
        uint64_t length;
        bool whole; /* completely written: need not be zeroed in the arena itself */
} StagingRange;

typedef struct Staging {
        uint64_t n_bytes;  /* of the scratch block; 0: none is needed */
        uint64_t *scratch; /* one per buffer: where it begins */
        StagingRange *zero, *in, *out;
        StagingRange *clear; /* ranges in device memory, which have no scratch */
        size_t n_zero, n_in, n_out, n_clear;
        bool ordered; /* zeros must come before the copies in: some bytes get both */
        bool updates; /* some of an arena's bytes are both read and written back */
} Staging;

/** staging_room() - size of staging_plan()'s @memory. */
size_t staging_room(size_t n_buffers);
/**
 * staging_plan() - lay out a job's buffers
 * @gap: bytes between buffers that do not overlap, each of which then begins at a multiple of
 *       STAGING_APART_ALIGNMENT; 0: neighbours stay adjacent
 * @memory: of staging_room() bytes, aligned for a pointer; @ret_staging points into it
 *
 * Ranges are inside their arenas (offset + length does not overflow). Return: 0, or -EOVERFLOW if their
 * sum cannot be addressed.
 */
int staging_plan(const StagingBuffer *buffers, size_t n_buffers, uint64_t gap, void *memory,
                 Staging *ret_staging);
/**
 * staging_fence() - let no byte of the scratch block show another user's data
 * @margin: bytes to add behind all
 *
 * For a kernel that may read the whole block, and for data that is staged, never worked on in place.
 */
void staging_fence(Staging *staging, uint64_t margin);

#endif
