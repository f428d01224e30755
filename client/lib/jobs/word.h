/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_WORD_H
#define GPUQ_JOBS_WORD_H

/*
 * Word
 *
 * Completion words: memory of this process that a job names and in which its worker stores the
 * job's tag in once it is done. A thread that waits for the job polls the word
 * instead of waiting for the message, which comes later and is read with others.
 * Until then the job is known to be done, but not how long it took.
 *
 * They serve clients with few outstanding jobs that wait for each: they are created
 * after some waits, and given to jobs that are submitted while few others are
 * outstanding. They need nothing from the daemon but a buffer.
 */

#include "arena.h"

#define WORD_N        128u /* at once */
#define WORD_BYTES    64u  /* a cache line each */
#define WORD_AFTER    16u  /* waits before they are made */
#define WORD_FEW_JOBS 4u   /* with more under way a job gets none */

/* Of one client. A word is told by its number, counted from 1; 0 is none. */
typedef struct Words {
        unsigned n_waits; /* for jobs, up to WORD_AFTER */
        Arena *arena;     /* NULL: not made */
        Extent *extent;   /* goes with the arena, at the client's end */
        unsigned n_free;
        uint16_t free[WORD_N];
} Words;

/** words_consider() - a wait is over: make them if it is time. Gives up the lock to ask the daemon. */
void words_consider(Words *words, gpuq_client *client);
/** word_take() - for a job that is submitted now, beside @n_open others. Return: 0: it gets none. */
unsigned word_take(Words *words, unsigned n_open);
/** word_give() - the end of its job was told; 0 is fine. */
void word_give(Words *words, unsigned word);
/** word_name() - the slice to name to the daemon; zeros for 0. */
void word_name(const Words *words, unsigned word, uint64_t *ret_arena, uint64_t *ret_offset);
/** word_at() - where to look. Return: NULL for 0. */
const uint32_t *word_at(const Words *words, unsigned word);
/** word_is_done() - the worker stored @tag: that job is done. */
bool word_is_done(const Words *words, unsigned word, uint32_t tag);

#endif
