/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Word
 */
#include "worker/word.h"

#include "util/pool.h"

#define WORD_SPARES 256

struct Word {
        uint64_t job;
        Arena *arena; /* in use by it */
        uint64_t offset;
        UT_hash_handle hh; /* words->by_job */
};

static Pool word_pool = POOL(sizeof(Word), WORD_SPARES);

void words_init(Words *words, Arenas *arenas) {
        *words = (Words){.arenas = arenas};
}

/* The supervisor has checked all this; a wrong store would be a wrong byte in somebody's memory. */
static bool word_is_inside(const Arena *arena, uint64_t offset) {
        return arena->place == GPUQ__V1__PLACE__HOST && offset % sizeof(uint32_t) == 0 &&
               arena->size >= sizeof(uint32_t) && offset <= arena->size - sizeof(uint32_t);
}

int words_add(Words *words, const Gpuq__Worker__WorkerJob *message) {
        Arena *arena;
        Word *word;

        if (!message->word_arena)
                return 0;
        arena = arenas_find(words->arenas, message->word_arena);
        if (!arena || !word_is_inside(arena, message->word_offset))
                return 0;

        word = pool_get(&word_pool);
        if (!word)
                return -ENOMEM;

        *word = (Word){.job = message->id, .arena = arena, .offset = message->word_offset};
        ++arena->n_uses;
        HASH_ADD(hh, words->by_job, job, sizeof(word->job), word);
        return 0;
}

static void word_store(const Word *word) {
        /* It may still be mapped by another thread: then the message tells alone. */
        if (word->arena->state != ARENA_READY)
                return;
        __atomic_store_n((uint32_t *)(word->arena->memory + word->offset), (uint32_t)word->job,
                         __ATOMIC_RELEASE);
}

void words_end(Words *words, uint64_t job, bool done) {
        Word *word;

        if (!words->by_job)
                return;
        HASH_FIND(hh, words->by_job, &job, sizeof(job), word);
        if (!word)
                return;

        if (done)
                word_store(word);
        HASH_DEL(words->by_job, word);
        arenas_unuse(word->arena);
        pool_put(&word_pool, word);
}
