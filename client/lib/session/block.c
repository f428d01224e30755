/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

const char *block_text(Block *block, const char *text) {
        size_t n = strlen(text) + 1;
        char *copy = memcpy(block->texts, text, n);

        block->texts += n;
        return copy;
}

int block_new(size_t n_structs, size_t n_texts, Block *ret_block) {
        uint8_t *memory;

        memory = calloc(1, n_structs + n_texts);
        if (!memory)
                return error_memory();

        *ret_block = (Block){.memory = memory, .texts = (char *)memory + n_structs};
        return 0;
}
