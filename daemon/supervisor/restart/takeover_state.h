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
        TAKEOVER_DISCOVERING,
        TAKEOVER_SERVING,
} TakeoverState;

/* What the keeper held. */
typedef struct TakeoverHeld {
        char key[KEEPER_KEY_MAX + 1];
        int fd;
        UT_hash_handle hh; /* takeover->held */
} TakeoverHeld;

/* A session that is away, or is back and has not said all yet. */
typedef struct TakeoverSession {
        Takeover *takeover;
        uint32_t id;
        LedgerSession record;
        uint32_t slot;
        uint32_t last_tag;   /* of its jobs that the ledger knows */
        bool is_claimed;     /* it is back */
        LedgerTold told;     /* ends that are kept for it */
        User *user;          /* it is away, and counts as one of his sessions; else NULL */
        ProcessWatch *watch; /* of its process, while it is away; NULL: we do not see that */
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
        Engine *engine;
        Clients *clients;
        void (*may_listen)(void *userdata);
        void *userdata;
        TakeoverState state;
        uv_timer_t timer; /* LOOKING: every TAKEOVER_TICK_MS; SERVING: after takeover_s */
        uint64_t began_ns;
        bool has_news;
        bool is_late; /* LOOKING: clients are let in */
        bool is_over; /* SERVING: nobody who is away is waited for any more */

        TakeoverHeld *held;
        TakeoverSession *sessions;
        TakeoverModule *modules;
        Arena **arenas; /* a reference to each, for sessions that are away */
        size_t n_arenas;
};

/** takeover_check() - is anybody still waited for? */
void takeover_check(Takeover *takeover);

/* takeover_away.c */

/** takeover_find_session() - Return: NULL: there is none. */
TakeoverSession *takeover_find_session(const Takeover *takeover, uint32_t id);
/** takeover_add_session() - it is away. Return: 0, -ESRCH: its process has ended, or another negative errno. */
int takeover_add_session(Takeover *takeover, const LedgerSession *record, uint32_t slot);
/** takeover_wake_session() - it is back. */
void takeover_wake_session(TakeoverSession *session);
/** takeover_leave_session() - it has said all, or has ended: forget it, and drop what was kept for it alone. */
void takeover_leave_session(Takeover *takeover, TakeoverSession *session);
/** takeover_end_session() - it will not be back. */
void takeover_end_session(Takeover *takeover, TakeoverSession *session);
/** takeover_forget_session() - what was kept for it stays. */
void takeover_forget_session(Takeover *takeover, TakeoverSession *session);
/** takeover_forget_module() - its record stays. */
void takeover_forget_module(Takeover *takeover, TakeoverModule *module);
/** takeover_expects_user() - one of this user's sessions is away. */
bool takeover_expects_user(const Takeover *takeover, uint32_t uid);

/* takeover_read.c */

/** takeover_read() - sessions, modules and ends that the ledger knows. Return: 0, or a negative errno. */
int takeover_read(Takeover *takeover);

/* takeover_held.c: what the keeper held */

/** takeover_take_fd() - what is held under this key, the caller's from now on. Return: -1: nothing. */
int takeover_take_fd(Takeover *takeover, const char *key);
/** takeover_restore() - arenas come back; devices are known, or none will be. Descriptors that mean nothing are dropped. */
void takeover_restore(Takeover *takeover);
/** takeover_drop_held() - arenas that nobody took, and all descriptors. */
void takeover_drop_held(Takeover *takeover);

#endif
