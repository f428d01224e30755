/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_KEPT_H
#define GPUQ_LIB_KEPT_H

/*
 * Kept
 *
 * The packed bytes of a job that has not ended, a Job or a Fire, as they went to
 * the daemon: said again when its supervisor was started again. They are packed
 * here once and copied into the message, so that keeping them costs a copy; small
 * ones, which most are, live in blocks that are used again.
 */

#include "client.h"

#define KEPT_BLOCK_BYTES 512u  /* a job of some buffers and a launch; larger ones are malloc()'s */
#define KEPT_N_SPARE     1024u /* blocks at most that wait for the next job */

typedef struct Kept {
        uint32_t n_bytes;
        bool pooled;
        bool is_fire;
        uint8_t bytes[];
} Kept;

/** kept_new() - room for @n_max bytes, none used. Return: 0, or GPUQ_E_SYSTEM. */
int kept_new(gpuq_client *client, size_t n_max, Kept **ret_kept);
/** kept_free() - NULL is fine. Return: NULL. */
Kept *kept_free(gpuq_client *client, Kept *kept);

#endif
