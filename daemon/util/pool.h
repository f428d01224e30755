/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_POOL_H
#define GPUQ_UTIL_POOL_H

/*
 * Pool
 *
 * Blocks of one size that are kept for the next one who needs such a block, up
 * to a number, so that what comes and goes with each job asks malloc for nothing.
 * For one thread. Under the address sanitizer a spare block may not be touched.
 */

#include <stddef.h>

typedef struct Pool {
        size_t size;    /* bytes of a block, at least a pointer's */
        size_t max;     /* spares */
        size_t n_spare; /* now */
        void *spares;   /* a chain through their first bytes */
} Pool;

#define POOL(block_size, n_max)                                                                    \
        { .size = (block_size), .max = (n_max) }

/** pool_get() - a block, its contents undefined. Return: NULL: no memory. */
void *pool_get(Pool *pool);
/** pool_put() - it is not needed any more; NULL is fine. */
void pool_put(Pool *pool, void *block);
/** pool_trim() - free all spares. */
void pool_trim(Pool *pool);

#endif
