/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_WORD_H
#define GPUQ_JOBS_WORD_H

/*
 * Word
 *
 * Completion words: memory of this process in which the worker stores a job's tag when the job is
 * done. A thread that waits for the job polls its word instead of waiting for the completion,
 * which arrives later and is read together with others. Until then the client knows that the job
 * is done, but not how long it took.
 *
 * They serve clients with few outstanding jobs that wait for each one. They are created after some
 * waits, and given to jobs that are submitted while few others are outstanding. The daemon
 * provides only a buffer for them.
 */

#include "arena.h"

#define WORD_N        128u /* at once */
#define WORD_BYTES    64u  /* a cache line each */
#define WORD_AFTER    16u  /* waits before they are made */
#define WORD_FEW_JOBS 4u   /* with more outstanding jobs, a job gets no word */

/* Of one client. A word is identified by its number, counted from 1; 0 means none. */
typedef struct Words {
        unsigned n_waits; /* for jobs, up to WORD_AFTER */
        Arena *arena;     /* NULL: not made */
        Extent *extent;   /* goes with the arena, at the client's end */
        unsigned n_free;
        uint16_t free[WORD_N];
} Words;

/** words_consider() - a wait has ended: create the words if it is time. Gives up the lock to ask
 * the daemon. */
void words_consider(Words *words, gpuq_client *client);
/** word_take() - a word for a job that is submitted now, beside @n_open others. Return: 0: it
 * gets none. */
unsigned word_take(Words *words, unsigned n_open);
/** word_give() - the completion of its job has arrived; 0 is fine. */
void word_give(Words *words, unsigned word);
/** word_name() - the slice that the job names to the daemon; zeros for 0. */
void word_name(const Words *words, unsigned word, uint64_t *ret_arena, uint64_t *ret_offset);
/** word_at() - the word's address. Return: NULL for 0. */
const uint32_t *word_at(const Words *words, unsigned word);

#endif
