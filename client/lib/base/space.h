/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BASE_SPACE_H
#define GPUQ_BASE_SPACE_H

/*
 * Space
 *
 * Allocates extents in a range of offsets. Pure: it never touches the memory
 * itself, and the caller does the locking. It remembers which part was never
 * allocated: new memory is zero and need not be cleared.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define SPACE_ALIGN     256u /* bytes: what CUDA gives at least, and a whole number of cache lines */
#define SPACE_N_CLASSES 64

enum {
        _SPACE_E_SUCCESS,
        SPACE_E_FULL, /* no gap is large enough */
};

typedef struct Extent {
        uint64_t offset;
        uint64_t size;  /* bytes, a multiple of SPACE_ALIGN */
        uint64_t dirty; /* bytes from its start that were in use before */
        bool free;
        TAILQ_ENTRY(Extent) neighbours; /* space->extents, by offset */
        LIST_ENTRY(Extent) gaps;        /* space->gaps, while free */
} Extent;

typedef struct Space {
        uint64_t fresh; /* nothing from this offset on was ever handed out */
        size_t n_taken;
        size_t n_retired;
        uint64_t classes; /* a bit for each list of gaps that is not empty */
        LIST_HEAD(, Extent) gaps[SPACE_N_CLASSES]; /* gaps of 2^i to 2^(i+1) - 1 bytes */
        TAILQ_HEAD(SpaceExtents, Extent) extents;
} Space;

/** space_init() - @size bytes, all free. Return: 0 or -ENOMEM. */
int space_init(Space *space, uint64_t size);
/** space_finish() - free all bookkeeping, also of allocated extents. */
void space_finish(Space *space);

/**
 * space_take() - allocate an extent of at least @size bytes, @size > 0
 *
 * Return: 0, SPACE_E_FULL, or -ENOMEM.
 */
int space_take(Space *space, uint64_t size, Extent **ret_extent);
/** space_give() - free an extent, which becomes invalid. */
void space_give(Space *space, Extent *extent);
/** space_retire() - the extent is unused, but must never be allocated again. */
void space_retire(Space *space, Extent *extent);
/** space_idle() - is no extent in use? */
bool space_idle(const Space *space);

#endif
