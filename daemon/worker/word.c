/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Word
 */
#include "worker/word.h"

/* The supervisor has checked all of this. A wrong store would change a byte in another user's
 * memory. */
static bool word_is_inside(const Arena *arena, uint64_t offset) {
        return arena->place == GPUQ__V1__PLACE__HOST && offset % sizeof(uint32_t) == 0 &&
               arena->size >= sizeof(uint32_t) && offset <= arena->size - sizeof(uint32_t);
}

void word_take(Word *word, Arena *arena, uint64_t offset) {
        if (!arena || !word_is_inside(arena, offset))
                return;

        *word = (Word){.arena = arena, .offset = offset};
        ++arena->n_uses;
}

/* Another thread may still be mapping the arena. Then only the message reports the end. */
bool word_is_ready(const Word *word) {
        return word->arena && word->arena->state == ARENA_READY;
}

void word_end(Word *word, uint64_t job, bool is_told) {
        if (!word->arena)
                return;

        if (is_told)
                __atomic_store_n((uint32_t *)(word->arena->memory + word->offset), (uint32_t)job,
                                 __ATOMIC_RELEASE);
        arenas_unuse(word->arena);
        word->arena = NULL;
}
