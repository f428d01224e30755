/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RESUME_OPS_H
#define GPUQ_SUPERVISOR_RESUME_OPS_H

/*
 * What sessions ask about the supervisor before this one. Provided by restart/; @takeover NULL: there was none.
 */

#include <stdbool.h>
#include <stdint.h>

#include "jobs.h"

typedef struct Session Session;
typedef struct Takeover Takeover;

typedef struct ResumeOps {
        /** serves() - requests may be served: what was taken over is complete. */
        bool (*serves)(const Takeover *takeover);
        /** is_ahead() - this job of @user may yet be named by a session that has not come back. */
        bool (*is_ahead)(const Takeover *takeover, const User *user, uint64_t id);
        /** claim() - @session says it was session @id. Return: NULL, it has that number now; or why not. */
        Failure *(*claim)(Takeover *takeover, Session *session, uint32_t id);
        /** resumed() - the session submitted again all it had; it has read of @n_seen ends. */
        void (*resumed)(Takeover *takeover, Session *session, uint32_t n_seen);
        /** closed() - a session that is_resuming ends. */
        void (*closed)(Takeover *takeover, Session *session);
        /** claim_module() - what is known of a module of that session. Return: false: it had no such module. */
        bool (*claim_module)(Takeover *takeover, const Session *session, uint64_t id,
                             ModuleSpec *spec);
} ResumeOps;

#endif
