/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_STAGING_H
#define GPUQ_WORKER_STAGING_H

/*
 * Staging
 *
 * Where a job's host buffers lie in its one scratch block, and what is zeroed
 * and copied. Slices of one arena that overlap share their scratch, so a kernel
 * sees one memory as it would in place. Slices that are next to each other, with less than
 * an alignment between them, stay so, and inputs among them are one copy. Pure: offsets only, no address.
 *
 * Before the job: zero the out slices, then copy the in and inout slices over
 * them. After it: copy the out and inout slices back. Slices in device memory are used
 * where they are; what is out there and not read is zeroed. What a job writes all of
 * need not be zeroed where it is the client's own memory; in scratch it is, or what is
 * not written after all would show what somebody else left there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAGING_ALIGNMENT 256u

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
        bool whole;     /* out, and all of it is written */
} StagingBuffer;

typedef struct StagingRange {
        const void *arena;
        uint64_t offset;  /* into the arena */
        uint64_t scratch; /* into the scratch block */
        uint64_t length;
        bool whole; /* all of it is written: need not be zeroed in the arena itself */
} StagingRange;

typedef struct Staging {
        uint64_t n_bytes;  /* of the scratch block; 0: none is needed */
        uint64_t *scratch; /* one a buffer: where it begins */
        StagingRange *zero, *in, *out;
        StagingRange *clear; /* in device memory, where there is no scratch */
        size_t n_zero, n_in, n_out, n_clear;
        bool ordered; /* zeros must come before the copies in: some are written twice */
        bool updates; /* some arena's bytes are both read and written back */
} Staging;

/** staging_room() - bytes that staging_plan() wants as @memory. */
size_t staging_room(size_t n_buffers);
/**
 * staging_plan() - lay a job's buffers out
 * @memory: of staging_room() bytes, aligned for a pointer; @ret_staging points into it
 *
 * Ranges are inside their arenas (offset + length does not overflow). Return: 0,
 * or -EOVERFLOW if all of them together are more than can be addressed.
 */
int staging_plan(const StagingBuffer *buffers, size_t n_buffers, void *memory,
                 Staging *ret_staging);

#endif
