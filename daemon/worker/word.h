/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_WORD_H
#define GPUQ_WORKER_WORD_H

/*
 * Word
 *
 * A completion word: four bytes of its client's memory that get a job's tag once
 * the job is done and its results are there, so that a client which looks at them
 * need not wait for the message. Only a help: a job whose word cannot be written
 * ends as any other, and one that fails writes none.
 *
 * The end is in the ring first, and the supervisor reads the ring of a worker that died
 * to its end. If the supervisor dies as well, the next one looks at the word
 * itself (supervisor, submit_has_word()). What a client read here is never taken back.
 */

#include "worker/arenas.h"

/* A job's. */
typedef struct Word {
        Arena *arena; /* in use by it; NULL: there is none */
        uint64_t offset;
} Word;

/** word_take() - one in @arena (NULL: none), if it can be there. */
void word_take(Word *word, Arena *arena, uint64_t offset);
/** word_is_ready() - it can be stored now. */
bool word_is_ready(const Word *word);
/** word_end() - its job has ended, and that was written to the ring. @is_told: store it. */
void word_end(Word *word, uint64_t job, bool is_told);

#endif
