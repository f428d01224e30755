/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Word
 */

#include "word.h"

#include "place.h"

static void words_open(Words *words, gpuq_client *client) {
        Extent *extent;
        Arena *arena;

        if (place_take(client, WORD_N * WORD_BYTES, ARENA_HOST, true, &arena, &extent) < 0)
                return;

        for (unsigned i = 0; i < WORD_N; i++)
                words->free[words->n_free++] = (uint16_t)(WORD_N - i);
        words->arena = arena;
        words->extent = extent;
}

void words_consider(Words *words, gpuq_client *client) {
        if (client->lead.spin.limit_ns == 0 || words->n_waits >= WORD_AFTER || client->error != 0)
                return;

        /* Ask only once, because a user over the quota would be refused again and again. */
        if (++words->n_waits == WORD_AFTER)
                words_open(words, client);
}

unsigned word_take(Words *words, unsigned n_open) {
        return words->n_free > 0 && n_open < WORD_FEW_JOBS ? words->free[--words->n_free] : 0;
}

void word_give(Words *words, unsigned word) {
        if (word)
                words->free[words->n_free++] = (uint16_t)word;
}

static uint64_t word_offset(const Words *words, unsigned word) {
        return words->extent->offset + (word - 1) * WORD_BYTES;
}

void word_name(const Words *words, unsigned word, uint64_t *ret_arena, uint64_t *ret_offset) {
        *ret_arena = word ? words->arena->id : 0;
        *ret_offset = word ? word_offset(words, word) : 0;
}

const uint32_t *word_at(const Words *words, unsigned word) {
        if (!word)
                return NULL;
        return (const uint32_t *)(words->arena->data + word_offset(words, word));
}
