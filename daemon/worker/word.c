/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Word
 */
#include "worker/word.h"

/* The supervisor has checked all this; a wrong store would be a wrong byte in somebody's memory. */
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

static void word_store(const Word *word, uint32_t tag) {
        /* It may still be mapped by another thread: then the message tells alone. */
        if (word->arena->state != ARENA_READY)
                return;
        __atomic_store_n((uint32_t *)(word->arena->memory + word->offset), tag, __ATOMIC_RELEASE);
}

void word_end(Word *word, uint64_t job, bool done) {
        if (!word->arena)
                return;

        if (done)
                word_store(word, (uint32_t)job);
        arenas_unuse(word->arena);
        word->arena = NULL;
}
