/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_WORD_H
#define GPUQ_WORKER_WORD_H

/*
 * Word
 *
 * A completion word: four bytes of the client's memory that get a job's tag when the job is done
 * and its results are visible. A client that polls it need not wait for the message. The message
 * is sent in any case: a job whose word cannot be written ends like any other, and a failed job
 * writes none.
 *
 * The end is in the ring first, and the supervisor reads the ring of a dead worker to its end. If
 * the supervisor dies as well, the next one reads the word itself (supervisor, submit_has_word()).
 * So a job that the client has seen as done stays done.
 */

#include "worker/arenas.h"

/* A job's. */
typedef struct Word {
        Arena *arena; /* referenced by it; NULL: there is none */
        uint64_t offset;
} Word;

/** word_take() - take a word in @arena (NULL: none), if the range is valid. */
void word_take(Word *word, Arena *arena, uint64_t offset);
/** word_is_ready() - it can be stored now. */
bool word_is_ready(const Word *word);
/** word_end() - its job has ended, and the end is in the ring. @is_told: store the tag. */
void word_end(Word *word, uint64_t job, bool is_told);

#endif
