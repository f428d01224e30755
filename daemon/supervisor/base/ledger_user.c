/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of jobs by user. A user takes them from the quota some at a time: a job's record mostly
 * costs one comparison.
 */

#include <stdlib.h>

#include "ledger_layout.h"

static void ledger_user_init(LedgerUser *user, uint32_t uid) {
        *user = (LedgerUser){.uid = uid, .person = user};
        TAILQ_INIT(&user->unseen);
}

void ledger_users_init(Ledger *ledger) {
        ledger_user_init(&ledger->nobody, UINT32_MAX);
        quota_init_open(&ledger->quota, LEDGER_JOBS - LEDGER_ENDS_KEPT);
}

void ledger_users_free(Ledger *ledger) {
        LedgerUser *user, *next;

        HASH_ITER (hh, ledger->users, user, next) {
                HASH_DEL(ledger->users, user);
                free(user);
        }
}

static LedgerUser *ledger_users_find(const Ledger *ledger, uint32_t uid) {
        LedgerUser *user;

        HASH_FIND(hh, ledger->users, &uid, sizeof(uid), user);
        return user;
}

/* Return: NULL: out of memory. */
static LedgerUser *ledger_users_make(Ledger *ledger, uint32_t uid) {
        LedgerUser *user = ledger_users_find(ledger, uid);

        if (user)
                return user;
        user = malloc(sizeof(*user));
        if (!user)
                return NULL;
        ledger_user_init(user, uid);
        HASH_ADD(hh, ledger->users, uid, sizeof(user->uid), user);
        if (!user->hh.tbl) {
                free(user);
                return NULL;
        }
        return user;
}

LedgerUser *ledger_users_look_up(Ledger *ledger, uint32_t uid) {
        LedgerUser *user = ledger_users_make(ledger, uid);

        if (!user)
                return &ledger->nobody;
        ledger->latest = user;
        return user->person;
}

bool ledger_users_grant(Ledger *ledger, LedgerUser *user) {
        if (!quota_take(&ledger->quota, user->n_granted, LEDGER_GRANT))
                return false;
        user->n_granted += LEDGER_GRANT;
        return user->n < user->n_granted;
}

void ledger_users_return(Ledger *ledger, LedgerUser *user) {
        quota_give(&ledger->quota, user->n_granted, LEDGER_GRANT);
        user->n_granted -= LEDGER_GRANT;
}

int ledger_join(Ledger *ledger, uint32_t uid, uint32_t person) {
        LedgerUser *owner = ledger_users_make(ledger, person);
        LedgerUser *user = owner ? ledger_users_make(ledger, uid) : NULL;

        if (!user)
                return -ENOMEM;
        user->person = owner;
        return 0;
}

void ledger_forget(Ledger *ledger, uint32_t uid) {
        LedgerUser *user = ledger_users_find(ledger, uid);

        if (!user || user->n)
                return;
        if (user->n_granted)
                quota_give(&ledger->quota, user->n_granted, user->n_granted);
        if (ledger->latest == user)
                ledger->latest = NULL;
        HASH_DEL(ledger->users, user);
        free(user);
}
