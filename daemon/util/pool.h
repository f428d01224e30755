/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_POOL_H
#define GPUQ_UTIL_POOL_H

/*
 * Pool
 *
 * Keeps a limited number of freed blocks of one size for reuse, so that objects of each job need
 * no malloc(). For one thread. Under the address sanitizer a spare block may not be touched.
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
/** pool_put() - free a block; NULL is fine. */
void pool_put(Pool *pool, void *block);
/** pool_trim() - free all spares. */
void pool_trim(Pool *pool);

#endif
