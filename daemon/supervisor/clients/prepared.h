/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PREPARED_H
#define GPUQ_SUPERVISOR_PREPARED_H

/*
 * Prepared
 *
 * A job that a session sent once in order to fire it often. It is kept as received and names arenas
 * and modules by number, so it keeps no object alive. Each job fired from it is checked like a
 * submitted job, except for its texts and counts, which no Fire changes. It is charged to its user
 * and ends with its session.
 */

#include <stdint.h>

#include "proto/gpuq.pb-c.h"
#include "base.h"
#include "jobs.h"
#include "util/macro.h"
#include "util/table.h"

/* Limits of one session, sized for small jobs that are fired often: a Fire of a few bytes makes a job
 * of the prepared size. */
#define PREPARED_MAX            1024u
#define PREPARED_BUFFERS_MAX    256u
#define PREPARED_KERNELS_MAX    256u
#define PREPARED_OPERATIONS_MAX (16u << 10) /* bytes */

typedef struct Prepared {
        uint32_t id;
        Gpuq__V1__Job *job;
        JobTexts texts;
        UserCharge charge;
        uint32_t last_tag; /* of its last job; 0: it had none */
        UT_hash_handle hh; /* session->prepared */
} Prepared;

/**
 * prepared_new() - copy @job, which passed its checks;
 *
 * @texts: the job's.
 *
 * Return: NULL with the caller's object, or why not.
 */
Failure *prepared_new(User *user, uint32_t id, const Gpuq__V1__Job *job, const JobTexts *texts,
                      Prepared **ret_prepared);
/** prepared_free() - it must be in no table; NULL is fine. Return: NULL. */
Prepared *prepared_free(Prepared *prepared);
DEFINE_CLEANUP(Prepared, prepared_free)

/**
 * prepared_job() - the job that a Fire makes from a prepared one
 * @ret_job: points into the prepared job and this module's memory; valid until the next call
 *
 * Return: NULL, or the error in the Fire.
 */
Failure *prepared_job(const Prepared *prepared, const Gpuq__V1__Fire *fire, Gpuq__V1__Job *ret_job);

#endif
