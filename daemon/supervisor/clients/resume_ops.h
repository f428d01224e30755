/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RESUME_OPS_H
#define GPUQ_SUPERVISOR_RESUME_OPS_H

/*
 * What sessions ask about the previous supervisor. Provided by restart/; @takeover NULL: there was none.
 */

#include <stdbool.h>
#include <stdint.h>

#include "jobs.h"

typedef struct Session Session;
typedef struct Takeover Takeover;

typedef struct ResumeOps {
        /** serves() - the takeover is complete, so requests may be served. */
        bool (*serves)(const Takeover *takeover);
        /** is_ahead() - a session that has not reconnected yet may still submit this job of @user. */
        bool (*is_ahead)(const Takeover *takeover, const User *user, uint64_t id);
        /** claim() - @session claims to have been session @id. Return: NULL: it has that id now; or why not. */
        Failure *(*claim)(Takeover *takeover, Session *session, uint32_t id);
        /** resumed() - the session has resubmitted everything, and acknowledged @n_seen ends. */
        void (*resumed)(Takeover *takeover, Session *session, uint32_t n_seen);
        /** closed() - a session with is_resuming ends. */
        void (*closed)(Takeover *takeover, Session *session);
        /** claim_module() - what is known of that session's module. Return: false: it had no such module. */
        bool (*claim_module)(Takeover *takeover, const Session *session, uint64_t id,
                             ModuleSpec *spec);
} ResumeOps;

#endif
