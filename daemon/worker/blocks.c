/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks
 */
#include "worker/blocks.h"

#include <stdlib.h>

typedef struct Block {
        unsigned size; /* number of its size; BLOCKS_SIZES: larger than all of them */
        _Alignas(max_align_t) unsigned char memory[];
} Block;

void blocks_init(Blocks *blocks) {
        for (unsigned size = 0; size < BLOCKS_SIZES; ++size)
                blocks->pools[size] = (Pool)POOL(sizeof(Block) + ((size_t)BLOCKS_SMALLEST << size),
                                                 BLOCKS_KEPT_MAX);
}

static unsigned blocks_size(size_t n_bytes) {
        unsigned size = 0;

        while (size < BLOCKS_SIZES && n_bytes > (size_t)BLOCKS_SMALLEST << size)
                ++size;
        return size;
}

void *blocks_take(Blocks *blocks, size_t n_bytes) {
        unsigned size = blocks_size(n_bytes);
        Block *block = size < BLOCKS_SIZES ? pool_get(&blocks->pools[size])
                                           : malloc(sizeof(*block) + n_bytes);

        if (!block)
                return NULL;

        block->size = size;
        return block->memory;
}

void blocks_give(Blocks *blocks, void *memory) {
        Block *block;

        if (!memory)
                return;

        block = (Block *)((unsigned char *)memory - offsetof(Block, memory));
        if (block->size < BLOCKS_SIZES)
                pool_put(&blocks->pools[block->size], block);
        else
                free(block);
}

void blocks_clear(Blocks *blocks) {
        for (unsigned size = 0; size < BLOCKS_SIZES; ++size)
                pool_trim(&blocks->pools[size]);
}
