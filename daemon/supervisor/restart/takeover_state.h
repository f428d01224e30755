/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TAKEOVER_STATE_H
#define GPUQ_SUPERVISOR_TAKEOVER_STATE_H

/*
 * What takeover.c, which decides when it is over, and the other takeover_….c have in
 * common.
 */

#include <uv.h>

#include "keeper/protocol.h"
#include "takeover.h"
#include "util/table.h"

typedef struct Arena Arena;

typedef enum TakeoverState {
        TAKEOVER_COLLECTING,
        TAKEOVER_LOOKING,
        TAKEOVER_OPEN,
        TAKEOVER_OVER,
} TakeoverState;

/* What the keeper held. */
typedef struct TakeoverHeld {
        char key[KEEPER_KEY_MAX + 1];
        int fd;
        UT_hash_handle hh; /* takeover->held */
} TakeoverHeld;

/* Who is expected, until it has said all or is gone. */
typedef struct TakeoverSession {
        uint32_t id;
        LedgerSession record;
        uint32_t slot;
        uint32_t last_tag;   /* of its jobs that the ledger knows */
        uint32_t n_sent;     /* of them in a worker that may live: it waits for these */
        bool is_claimed;     /* it is here, and has not said all yet */
        LedgerTold told;     /* ends that are kept for it; once the window is closed */
        User *user;          /* it is dormant, and counts as one of his; else NULL */
        ProcessWatch *watch; /* of its process, while it is dormant */
        Takeover *takeover;  /* likewise */
        UT_hash_handle hh;   /* takeover->sessions */
} TakeoverSession;

/* A module that its session has yet to name. */
typedef struct TakeoverModule {
        uint64_t id;
        LedgerModule record;
        uint32_t slot;
        UT_hash_handle hh; /* takeover->modules */
} TakeoverModule;

struct Takeover {
        Supervisor *supervisor;
        TakeoverState state;
        uv_timer_t timer;
        uint64_t began_ns;
        uint64_t brief_ns; /* OPEN: for those who have nothing in a worker no longer */
        uint64_t until_ns; /* LOOKING, OPEN: no longer; nor for jobs of those who are not back */
        bool has_news;
        bool is_late; /* LOOKING: clients are let in */

        TakeoverHeld *held;
        TakeoverSession *sessions;
        TakeoverModule *modules;
        TakeoverJob *jobs; /* OVER */
        Arena **arenas;    /* a reference to each until all is over */
        size_t n_arenas;

        unsigned n_expected;
        unsigned n_resumed;
        unsigned n_workers;
        unsigned n_running;
};

/** takeover_check() - is anybody still waited for? */
void takeover_check(Takeover *takeover);
/** takeover_find_session() - that is expected, or dormant. Return: NULL: there is none. */
TakeoverSession *takeover_find_session(const Takeover *takeover, uint32_t id);
/** takeover_forget_session() - it is neither any more. */
void takeover_forget_session(Takeover *takeover, TakeoverSession *session);
/** takeover_forget_module() - its record stays. */
void takeover_forget_module(Takeover *takeover, TakeoverModule *module);
/** takeover_find_worker() - Return: NULL: it has ended, and may have said all it had to say. */
Worker *takeover_find_worker(const Takeover *takeover, uint32_t id);
/** takeover_adopt_job() - its client said it again: back to where it was. What the worker says of it is read later. */
void takeover_adopt_job(Takeover *takeover, Job *job, uint32_t worker_id);

/* takeover_read.c */

/** takeover_read() - sessions, modules and ends that the ledger knows. Return: 0, or a negative errno. */
int takeover_read(Takeover *takeover);

/* takeover_held.c: what the keeper held */

/** takeover_take_fd() - what is held under this key, the caller's from now on. Return: -1: nothing. */
int takeover_take_fd(Takeover *takeover, const char *key);
/** takeover_want_workers() - those of the ledger are not to be killed: they will be attached. */
void takeover_want_workers(Takeover *takeover);
/** takeover_restore() - arenas and workers come back; devices are known, or none will be. */
void takeover_restore(Takeover *takeover);
/** takeover_drop_fds() - descriptors that meant nothing. */
void takeover_drop_fds(Takeover *takeover);
/** takeover_drop_held() - arenas that nobody took, and descriptors that meant nothing. */
void takeover_drop_held(Takeover *takeover);

/* takeover_dormant.c */

/** takeover_sleep_session() - it is dormant from now on. Return: 0, or a negative errno: its process cannot be watched. */
int takeover_sleep_session(Takeover *takeover, TakeoverSession *session);
/** takeover_wake_session() - it is back; harmless if it was not dormant. */
void takeover_wake_session(TakeoverSession *session);
/** takeover_leave_session() - OVER: forget it, and drop what was kept for it alone. */
void takeover_leave_session(Takeover *takeover, TakeoverSession *session);
/** takeover_prune() - arenas and modules that no session of ours wants go. */
void takeover_prune(Takeover *takeover);
/** takeover_keep_job() - it is in a worker, and its session may yet claim it. */
void takeover_keep_job(Takeover *takeover, const LedgerJob *known);
/** takeover_forget_job() - its record stays. */
void takeover_forget_job(Takeover *takeover, TakeoverJob *job);
/** takeover_claim_job() - its session did, and it ends as it was doomed to; unknown ones are fine. */
void takeover_claim_job(Takeover *takeover, Job *job);

#endif
