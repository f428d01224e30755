/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Word
 */

#include "word.h"

#include "arena.h"
#include "job.h"

struct Words {
        Arena *arena;
        Extent *extent; /* goes with the arena, at the client's end */
        unsigned n_free;
        uint16_t free[WORD_N]; /* numbers */
};

static void words_open(gpuq_client *client) {
        Words *words = calloc(1, sizeof(*words));

        if (!words)
                return;
        if (arena_take(client, WORD_N * WORD_BYTES, ARENA_HOST, true, &words->arena,
                       &words->extent) < 0) {
                free(words);
                return;
        }

        for (unsigned i = 0; i < WORD_N; i++)
                words->free[words->n_free++] = (uint16_t)(WORD_N - 1 - i);
        client->words = words;
}

void words_consider(gpuq_client *client) {
        if (client->spin.limit_ns == 0 || client->n_waits >= WORD_AFTER || client->error != 0)
                return;

        /* Once: a user over its quota would be asked again and again. */
        if (++client->n_waits == WORD_AFTER)
                words_open(client);
}

void word_take(gpuq_job *job) {
        Words *words = job->client->words;

        if (words && words->n_free > 0 && job->client->n_open < WORD_FEW_JOBS)
                job->word = words->free[--words->n_free] + 1u;
}

void word_give(gpuq_job *job) {
        Words *words = job->client->words;

        if (job->word)
                words->free[words->n_free++] = (uint16_t)(job->word - 1);
        job->word = 0;
}

static uint64_t word_offset(const gpuq_job *job) {
        return job->client->words->extent->offset + (job->word - 1) * WORD_BYTES;
}

bool word_name(const gpuq_job *job, uint64_t *ret_arena, uint64_t *ret_offset) {
        if (!job->word)
                return false;

        *ret_arena = job->client->words->arena->id;
        *ret_offset = word_offset(job);
        return true;
}

const uint32_t *word_of(const gpuq_job *job) {
        if (!job->word)
                return NULL;
        return (const uint32_t *)(job->client->words->arena->data + word_offset(job));
}

bool word_is_done(const gpuq_job *job) {
        const uint32_t *word = word_of(job);

        return word && __atomic_load_n(word, __ATOMIC_ACQUIRE) == job->tag;
}
