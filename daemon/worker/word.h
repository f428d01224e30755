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
 * The end is in the ring first. The ring outlives us: what a client read here is
 * never taken back, even if we are killed in between.
 */

#include "proto/worker.pb-c.h"
#include "worker/arenas.h"

typedef struct Word Word;

typedef struct Words {
        Arenas *arenas;
        Word *by_job; /* of jobs that have not ended */
} Words;

/** words_init() */
void words_init(Words *words, Arenas *arenas);
/** words_add() - a job came that may name one. Return: 0, or -ENOMEM. */
int words_add(Words *words, const Gpuq__Worker__WorkerJob *message);
/** words_end() - a job has ended, @done or not, and that was written to the ring. */
void words_end(Words *words, uint64_t job, bool done);

#endif
