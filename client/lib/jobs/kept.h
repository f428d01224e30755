/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_KEPT_H
#define GPUQ_JOBS_KEPT_H

/*
 * Kept
 *
 * The packed bytes of a job that has not ended, a Job or a Fire, as they went to
 * the daemon: sent again after a restart of the supervisor. They are packed
 * here once and copied into the message, so that keeping them costs a copy; small
 * ones, which most are, live in blocks that are used again.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/pool.h"

#define KEPT_BLOCK_BYTES 512u  /* a job of some buffers and a launch; larger ones are malloc()'s */
#define KEPT_N_SPARE     1024u /* blocks at most that wait for the next job */

typedef struct Kept {
        Pool *pool; /* NULL: malloc's */
        uint32_t n_bytes;
        bool is_fire;
        uint8_t bytes[];
} Kept;

#define KEPT_POOL POOL(KEPT_BLOCK_BYTES, KEPT_N_SPARE)

/** kept_new() - room for @n_max bytes, none used. @pool: of KEPT_POOL. Return: 0, or GPUQ_E_SYSTEM. */
int kept_new(Pool *pool, size_t n_max, Kept **ret_kept);
/** kept_free() - NULL is fine. Return: NULL. */
Kept *kept_free(Kept *kept);

#endif
