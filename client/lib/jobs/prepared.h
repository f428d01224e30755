/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_PREPARED_H
#define GPUQ_JOBS_PREPARED_H

/*
 * Prepared
 *
 * A job that the daemon keeps, with what is needed to fire it (fire.c) and to prepare it again
 * after a restart of the daemon. The user's handle and unfinished jobs fired from it each hold a
 * reference. When the last reference is gone, the daemon is asked to forget it.
 */

#include "apart.h"
#include "buffer.h"
#include "kept.h"
#include "module.h"

/* A scalar among the packed operations. */
typedef struct PreparedScalar {
        size_t operation, argument;
        uint32_t offset, size; /* bytes */
        gpuq_kind kind;
} PreparedScalar;

/* Of one client: those that the daemon knows. */
typedef struct Prepareds {
        TAILQ_HEAD(, gpuq_prepared) known;
} Prepareds;

struct gpuq_prepared {
        unsigned refs;
        gpuq_client *client;                /* a reference */
        TAILQ_ENTRY(gpuq_prepared) entries; /* prepareds->known */
        uint32_t id;        /* 0: the daemon does not know it, and it is in no list */
        Kept *job;          /* as it was packed for Prepare */
        BufferUse *buffers; /* each a reference */
        size_t n_buffers;
        gpuq_module **modules; /* likewise */
        size_t n_modules;
        PreparedScalar *scalars;
        size_t n_scalars;
        ApartPairs apart;

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
/** prepared_refire() - pack a job that was fired in the direct ring. @is_taken: its reader had taken it. Return: 0, or GPUQ_E_SYSTEM. */
int prepared_refire(gpuq_job *job, bool is_taken);

#endif
