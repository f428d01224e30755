/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REGISTRY_H
#define GPUQ_SUPERVISOR_REGISTRY_H

/*
 * Registry
 *
 * All sessions of the daemon, and lists of the sessions with work for the next turn of the loop.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "jobs.h"
#include "resume_ops.h"
#include "serving.h"
#include "report_state.h"
#include "util/bump.h"

typedef struct Arrival Arrival;
typedef struct Clients Clients;
typedef struct DetachedOps DetachedOps;
typedef struct DetachedTable DetachedTable;
typedef struct Accounting Accounting;
typedef struct AccountingOps AccountingOps;
typedef struct Listener Listener;
typedef struct Session Session;
typedef struct SlurmJob SlurmJob;
typedef struct Transits Transits;

#define CLIENTS_DEFER_TURNS 2u /* after that many turns every connection was read */

TAILQ_HEAD(Sessions, Session);

/* See arrivals.h. */
typedef struct Arrivals {
        TAILQ_HEAD(, Arrival) list; /* the longest here first */
        Quota quota;
        bool is_due; /* some of them may go on */
} Arrivals;

struct Clients {
        Engine *engine;
        const ResumeOps *resume_ops; /* provided by restart/, called with `takeover` */
        Takeover *takeover;          /* NULL: nothing was taken over */
        Bump *bump;                  /* the memory of one request at a time */

        DetachedTable *detached;
        const DetachedOps *detached_ops;
        Accounting *accounting;
        const AccountingOps *accounting_ops;
        Arrivals arrivals;   /* connections of users who are being looked up */
        Listener *listener;  /* NULL: the keeper has not handed the socket over yet */
        bool is_private;     /* serves private_uid alone */
        bool lacks_priority; /* the supervisor may not raise its own, see util/cores.h */
        uid_t private_uid;

        Session *sessions;
        uint32_t last_session;
        SlurmJob *slurm_jobs; /* those that sessions belong to */
        unsigned n_refused;   /* refused connections that are not closed yet */
        uint64_t
                kept_at; /* without the ledger nobody finds a session again: its position on the keeper link */
        Transits *transits;         /* descriptors that clients have not read */
        struct Sessions flushing;   /* sessions with queued output */
        struct Sessions keeping;    /* those whose output waits for the keeper */
        struct Sessions deferring;  /* sessions with a deferred request that is not due */
        struct Sessions polled;     /* sessions whose ring the loop polls */
        TAILQ_HEAD(, Lending) lent; /* direct rings that workers have, or may get */
        Snapshot snapshot;          /* when reports are made */
        Serving serving;            /* how the turn is divided among people */
        uint64_t turn;              /* of the loop */
        bool is_awaiting;           /* sessions from before a restart may still name jobs */
        uint64_t news_turn;         /* deferred requests are tried again until this turn */
};

#endif
