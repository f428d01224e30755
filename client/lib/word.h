/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_WORD_H
#define GPUQ_LIB_WORD_H

/*
 * Word
 *
 * Completion words: memory of ours that a job names and its worker stores the
 * job's tag in once it is done. A thread that waits for the job looks there and
 * need not wait for the message, which comes later and is read with others; until
 * then the job is done, but how long it took is not known.
 *
 * They are for one who has few jobs under way and waits for each: made after some
 * waits, named by jobs that are submitted while few others run. Nothing here asks
 * the daemon for more than a buffer would.
 */

#include "client.h"

#define WORD_N        128u /* at once */
#define WORD_BYTES    64u  /* a cache line each */
#define WORD_AFTER    16u  /* waits before they are made */
#define WORD_FEW_JOBS 4u   /* with more under way a job gets none */

/** words_consider() - a wait is over: make them if it is time. Gives up the lock to ask the daemon. */
void words_consider(gpuq_client *client);
/** word_take() - for a job that is submitted now; it may get none. */
void word_take(gpuq_job *job);
/** word_give() - its end was told; it may have none. */
void word_give(gpuq_job *job);
/** word_name() - the slice to name to the daemon. Return: false: it has none. */
bool word_name(const gpuq_job *job, uint64_t *ret_arena, uint64_t *ret_offset);
/** word_is_done() - its worker stored that it is done. */
bool word_is_done(const gpuq_job *job);
/** word_of() - where to look, and for job->tag. Return: NULL: it has none. */
const uint32_t *word_of(const gpuq_job *job);

#endif
