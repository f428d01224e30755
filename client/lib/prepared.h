/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_PREPARED_H
#define GPUQ_LIB_PREPARED_H

/*
 * Prepared
 *
 * A job that the daemon keeps, and what is needed to fire it, and to have it kept
 * again by a daemon that was started again. The user's handle and jobs fired from
 * it that have not ended each hold a reference; with the last one the daemon is
 * told that it need not keep it.
 */

#include "job.h"
#include "kept.h"

typedef struct PreparedScalar PreparedScalar;

struct gpuq_prepared {
        unsigned refs;
        gpuq_client *client;                /* a reference */
        TAILQ_ENTRY(gpuq_prepared) entries; /* client->prepared */
        uint32_t id;                        /* 0: the daemon was not told, it is in no list */
        Kept *job;                          /* as it was packed for Prepare */
        JobBuffer *buffers;                 /* each a reference */
        size_t n_buffers;
        gpuq_module **modules; /* likewise */
        size_t n_modules;
        PreparedScalar *scalars;
        size_t n_scalars, n_scalars_max;

        /* room for one Fire */
        gpuq_buffer **now; /* of each buffer */
        uint64_t *slices;
        uint32_t *patches;
        uint8_t *values;
};

/** prepared_ref() - Return: @prepared. */
gpuq_prepared *prepared_ref(gpuq_prepared *prepared);
/** prepared_unref() - with the lock, and a reference to the client beside its own; NULL is fine. */
void prepared_unref(gpuq_prepared *prepared);
/** prepared_unpack() - its job as a message, to be freed. Return: NULL: no memory. */
Gpuq__V1__Job *prepared_unpack(const gpuq_prepared *prepared);

#endif
