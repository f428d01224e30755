/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DETACHED_OPS_H
#define GPUQ_SUPERVISOR_DETACHED_OPS_H

/*
 * Detached jobs, as clients see them
 *
 * The room of detached jobs provides this table, and clients call it without knowing that room. Each
 * request sends its own answer, usually later.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"
#include "jobs.h"

typedef struct DetachedTable DetachedTable;
typedef struct Session Session;

/* The result of a request to cancel. */
typedef enum DetachedCancel {
        DETACHED_CANCEL_NONE, /* not a detached job */
        DETACHED_CANCEL_DONE,
        DETACHED_CANCEL_LATE, /* the job has already ended */
        DETACHED_CANCEL_DENIED,
} DetachedCancel;

/* One job in a listing. */
typedef struct DetachedEntry {
        uint64_t id;
        const User *user;
        const Gpuq__V1__Job *job;
        uint64_t made_s;    /* since 1970 */
        uint32_t slurm_job; /* of the client that submitted it; 0: none */
        const char *reason; /* why it waits; NULL: it has ended, or is listed as a job in memory */
} DetachedEntry;

typedef void (*DetachedVisit)(const DetachedEntry *entry, void *userdata);

typedef struct DetachedOps {
        void (*detach)(DetachedTable *table, Session *session, uint32_t serial,
                       const Gpuq__V1__Detach *detach);
        void (*fetch)(DetachedTable *table, Session *session, uint32_t serial, uint64_t id);
        void (*discard)(DetachedTable *table, Session *session, uint32_t serial, uint64_t id);
        /* false: there is no such detached job */
        bool (*wait)(DetachedTable *table, Session *session, uint32_t serial, uint64_t id);
        DetachedCancel (*cancel)(DetachedTable *table, const Session *session, uint64_t id);
        /* NULL: if @id is a detached job, it is in the table; else why that is not known now */
        Failure *(*check_id)(const DetachedTable *table, uint64_t id);
        /* visits all jobs that are not damaged; @visit may cancel */
        void (*visit)(const DetachedTable *table, DetachedVisit visit, void *userdata);
        size_t (*count)(const DetachedTable *table);
        /* an end is being written to disk; if it is lost the job runs again */
        bool (*is_writing)(const DetachedTable *table);
        /* the session ends: its requests get no answer */
        void (*forget)(Session *session);
} DetachedOps;

/** detached_is_id() - detached ids are below 2^32, as if of a session 0, which does not exist. */
static inline bool detached_is_id(uint64_t id) {
        return id && id <= UINT32_MAX;
}

#endif
