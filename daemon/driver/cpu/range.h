/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_RANGE_H
#define GPUQ_CPU_RANGE_H

/*
 * Range
 *
 * Which addresses of this process are memory that the API knows, so that a copy out of bounds is
 * rejected as by CUDA. One map per process, safe from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RangeKind {
        RANGE_POOL = 1 << 0,       /* cuMemAllocFromPoolAsync(); owner: PoolBlock */
        RANGE_MAPPED = 1 << 1,     /* cuMemMap(); owner: MemoryMap */
        RANGE_VARIABLE = 1 << 2,   /* of a module */
        RANGE_REGISTERED = 1 << 3, /* cuMemHostRegister() */
        RANGE_HOST = 1 << 4,       /* cuMemHostAlloc() */
        RANGE_RESERVED = 1 << 5,   /* cuMemAddressReserve(); in a map of its own */
} RangeKind;
#define RANGE_DEVICE (RANGE_POOL | RANGE_MAPPED | RANGE_VARIABLE)
#define RANGE_PINNED (RANGE_REGISTERED | RANGE_HOST)

typedef struct Range {
        uintptr_t start;
        size_t size;
        RangeKind kind;
        void *owner;
} Range;

enum {
        _RANGE_E_SUCCESS,
        RANGE_E_OVERLAP,
};

/** range_add() - Return: 0, RANGE_E_OVERLAP, or -ENOMEM. */
int range_add(const Range *range);
/** range_remove() - the one of these kinds that starts at @start. Return: whether there was one. */
bool range_remove(uintptr_t start, int kinds, Range *ret_range);
/** range_find() - the one of these kinds that holds @address. Return: whether there is one. */
bool range_find(uintptr_t address, int kinds, Range *ret_range);
/** range_covers() - whether ranges of these kinds hold every byte. */
bool range_covers(uintptr_t start, size_t size, int kinds);

#ifdef __cplusplus
}
#endif

#endif
