/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TAKEOVER_STATE_H
#define GPUQ_SUPERVISOR_TAKEOVER_STATE_H

/*
 * What takeover.c, which decides when the takeover is over, shares with the other takeover files.
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

/* A descriptor that the keeper held. */
typedef struct TakeoverHeld {
        char key[KEEPER_KEY_MAX + 1];
        int fd;
        UT_hash_handle hh; /* takeover->held */
} TakeoverHeld;

/* A session that is dormant, or reconnected and still resubmitting. */
typedef struct TakeoverSession {
        Takeover *takeover;
        uint32_t id;
        LedgerSession record;
        uint32_t slot;
        uint32_t last_tag;   /* the last of its jobs in the ledger */
        bool is_claimed;     /* it has reconnected */
        LedgerTold told;     /* ends that are kept for it */
        User *user;          /* dormant: the user whose sessions it counts among; else NULL */
        ProcessWatch *watch; /* dormant: watches its process; NULL: it cannot be watched */
        UT_hash_handle hh;   /* takeover->sessions */
} TakeoverSession;

/* A module that its session has not named again yet. */
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
        uv_timer_t timer; /* DISCOVERING: every TAKEOVER_TICK_MS; SERVING: after takeover_s */
        uint64_t began_ns;
        bool has_news;
        bool is_late; /* DISCOVERING: clients may connect */
        bool is_over; /* SERVING: dormant sessions are not waited for any more */

        TakeoverHeld *held;
        TakeoverSession *sessions;
        TakeoverModule *modules;
        Arena **arenas; /* a reference to each, for dormant sessions */
        size_t n_arenas;
};

/** takeover_check() - whether any session is still waited for. */
void takeover_check(Takeover *takeover);

/* takeover_away.c */

/** takeover_find_session() - Return: NULL: there is none. */
TakeoverSession *takeover_find_session(const Takeover *takeover, uint32_t id);
/**
 * takeover_add_session() - add a dormant session
 *
 * Return: 0, -ESRCH: its process has ended, or another negative errno.
 */
int takeover_add_session(Takeover *takeover, const LedgerSession *record, uint32_t slot);
/** takeover_wake_session() - it has reconnected. */
void takeover_wake_session(TakeoverSession *session);
/**
 * takeover_leave_session() - it has resubmitted everything, or ended: forget it, and drop what was
 * kept for it alone
 */
void takeover_leave_session(Takeover *takeover, TakeoverSession *session);
/** takeover_end_session() - it will not reconnect. */
void takeover_end_session(Takeover *takeover, TakeoverSession *session);
/** takeover_forget_session() - forget it; what was kept for it stays. */
void takeover_forget_session(Takeover *takeover, TakeoverSession *session);
/** takeover_forget_module() - forget the module; its record stays. */
void takeover_forget_module(Takeover *takeover, TakeoverModule *module);
/** takeover_expects_user() - one of this user's sessions is dormant. */
bool takeover_expects_user(const Takeover *takeover, uint32_t uid);

/* takeover_read.c */

/** takeover_read() - read sessions, modules and ends from the ledger. Return: 0, or a negative errno. */
int takeover_read(Takeover *takeover);

/* takeover_held.c: what the keeper held */

/** takeover_take_fd() - the descriptor under this key, now the caller's. Return: -1: there is none. */
int takeover_take_fd(Takeover *takeover, const char *key);
/**
 * takeover_restore() - restore arenas; devices are known, or there will be none
 *
 * Descriptors without a meaning are dropped.
 */
void takeover_restore(Takeover *takeover);
/** takeover_drop_held() - drop arenas without a session, and all descriptors. */
void takeover_drop_held(Takeover *takeover);

#endif
