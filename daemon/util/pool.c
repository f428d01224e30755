/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool
 */

#include "util/pool.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

/* The link to the next block stays readable, because the leak checker finds the blocks through
 * it. */
static void pool_poison(const Pool *pool, void *block) {
        ASAN_POISON_MEMORY_REGION((char *)block + sizeof(void *), pool->size - sizeof(void *));
}

static void *pool_take(Pool *pool) {
        void *block = pool->spares;

        ASAN_UNPOISON_MEMORY_REGION(block, pool->size);
        pool->spares = *(void **)block;
        pool->n_spare--;
        return block;
}

void *pool_get(Pool *pool) {
        return pool->spares ? pool_take(pool) : malloc(pool->size);
}

void pool_put(Pool *pool, void *block) {
        if (!block)
                return;
        if (pool->n_spare >= pool->max) {
                free(block);
                return;
        }

        *(void **)block = pool->spares;
        pool->spares = block;
        pool->n_spare++;
        pool_poison(pool, block);
}

void pool_trim(Pool *pool) {
        while (pool->spares)
                free(pool_take(pool));
}
