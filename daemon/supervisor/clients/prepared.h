/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PREPARED_H
#define GPUQ_SUPERVISOR_PREPARED_H

/*
 * Prepared
 *
 * A job that a session sent once to fire it often. It is kept as it came, and
 * names arenas and modules by number: nothing lives longer for it, and each job
 * fired from it is checked like one that was submitted, but for its texts and for how
 * much there is of what, which no Fire changes. Charged to its user, gone with its session.
 */

#include <stdint.h>

#include "proto/gpuq.pb-c.h"
#include "base.h"
#include "jobs.h"
#include "util/macro.h"
#include "util/table.h"

/* Of one session; and what a small job that is fired often may have. A Fire of a few
 * bytes makes a job of all that. */
#define PREPARED_MAX            1024u
#define PREPARED_BUFFERS_MAX    256u
#define PREPARED_KERNELS_MAX    256u
#define PREPARED_OPERATIONS_MAX (16u << 10) /* bytes */

typedef struct Prepared {
        uint32_t id;
        Gpuq__V1__Job *job;
        JobTexts texts;
        UserCharge charge;
        UT_hash_handle hh; /* session->prepared */
} Prepared;

/** prepared_new() - a copy of @job, which was checked; @texts: its own. Return: NULL and the caller's, or why not. */
Failure *prepared_new(User *user, uint32_t id, const Gpuq__V1__Job *job, const JobTexts *texts,
                      Prepared **ret_prepared);
/** prepared_free() - not in a table any more; NULL is fine. Return: NULL. */
Prepared *prepared_free(Prepared *prepared);
DEFINE_CLEANUP(Prepared, prepared_free)

/**
 * prepared_job() - the job that a Fire makes of it
 * @ret_job: points into the prepared one and memory of this module, valid until the next call
 *
 * Return: NULL, or what is wrong with the Fire.
 */
Failure *prepared_job(const Prepared *prepared, const Gpuq__V1__Fire *fire, Gpuq__V1__Job *ret_job);

#endif
