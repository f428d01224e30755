/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_KEPT_H
#define GPUQ_JOBS_KEPT_H

/*
 * Kept
 *
 * The packed bytes of a job that has not ended (a Job or a Fire), as they were sent to the daemon.
 * After a restart of the supervisor they are sent again. They are packed here and copied into the
 * message, so keeping them costs one copy. Small jobs, which are most, use blocks that are reused.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/pool.h"

#define KEPT_BLOCK_BYTES 512u  /* a job of some buffers and a launch; larger ones are malloc()'s */
#define KEPT_N_SPARE     1024u /* at most this many blocks are kept for later jobs */

typedef struct Kept {
        Pool *pool; /* NULL: malloc's */
        uint32_t n_bytes;
        bool is_fire;
        uint8_t bytes[];
} Kept;

#define KEPT_POOL POOL(KEPT_BLOCK_BYTES, KEPT_N_SPARE)

/** kept_new() - memory for @n_max bytes, none of them used. @pool: of KEPT_POOL. Return: 0, or
 * GPUQ_E_SYSTEM. */
int kept_new(Pool *pool, size_t n_max, Kept **ret_kept);
/** kept_free() - NULL is fine. Return: NULL. */
Kept *kept_free(Kept *kept);

#endif
