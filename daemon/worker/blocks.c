/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks
 */
#include "worker/blocks.h"

#include <stdlib.h>

struct Block {
        Block *next;   /* while it is kept */
        unsigned size; /* number of its size; BLOCKS_SIZES: larger than all of them */
        _Alignas(max_align_t) unsigned char memory[];
};

static unsigned blocks_size(size_t n_bytes) {
        unsigned size = 0;

        while (size < BLOCKS_SIZES && n_bytes > (size_t)BLOCKS_SMALLEST << size)
                ++size;
        return size;
}

void *blocks_take(Blocks *blocks, size_t n_bytes) {
        unsigned size = blocks_size(n_bytes);
        Block *block;

        if (size < BLOCKS_SIZES && blocks->kept[size]) {
                block = blocks->kept[size];
                blocks->kept[size] = block->next;
                --blocks->n_kept[size];
                return block->memory;
        }

        block = malloc(sizeof(*block) +
                       (size < BLOCKS_SIZES ? (size_t)BLOCKS_SMALLEST << size : n_bytes));
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
        if (block->size == BLOCKS_SIZES || blocks->n_kept[block->size] == BLOCKS_KEPT_MAX) {
                free(block);
                return;
        }
        block->next = blocks->kept[block->size];
        blocks->kept[block->size] = block;
        ++blocks->n_kept[block->size];
}

void blocks_clear(Blocks *blocks) {
        for (unsigned size = 0; size < BLOCKS_SIZES; ++size)
                while (blocks->kept[size]) {
                        Block *block = blocks->kept[size];

                        blocks->kept[size] = block->next;
                        --blocks->n_kept[size];
                        free(block);
                }
}
