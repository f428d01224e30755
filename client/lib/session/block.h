/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SESSION_BLOCK_H
#define GPUQ_SESSION_BLOCK_H

/*
 * Block
 *
 * An answer of the daemon as plain structs with their texts, in one allocation.
 */

#include <stddef.h>
#include <stdint.h>

/* Texts go behind the structs. */
typedef struct Block {
        uint8_t *memory;
        char *texts;
} Block;

/** block_new() - zeroed. @n_structs, @n_texts: bytes. Return: 0, or GPUQ_E_SYSTEM. */
int block_new(size_t n_structs, size_t n_texts, Block *ret_block);
/** block_text() - copy a text. Return: the copy. */
const char *block_text(Block *block, const char *text);

#endif
