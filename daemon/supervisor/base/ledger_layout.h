/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LEDGER_LAYOUT_H
#define GPUQ_SUPERVISOR_LEDGER_LAYOUT_H

/*
 * The ledger's layout in memory; for ledger.c and ledger_job.c alone.
 *
 * There is one writer, which may be killed between any two stores. It marks a record before
 * touching it, and writes the record's checksum last.
 */

#include "ledger.h"
#include "policy.h"
#include "util/table.h"

#define LEDGER_MAGIC      "gpuqledg"
#define LEDGER_HEAD_BYTES 4096u
#define LEDGER_KINDS      (_LEDGER_KIND_N + 1) /* with jobs */
#define LEDGER_JOB        _LEDGER_KIND_N
#define LEDGER_TEXT_PAD   8u /* zeros behind a text: its terminator, and padding to the next word */
#define LEDGER_GRANT      64u /* records that a user takes from the quota at once */
#define LEDGER_CHECK_SEED 0x9e3779b97f4a7c15ull

/* A number that only grows; written twice, so that a flipped bit shows. */
typedef struct LedgerCount {
        uint64_t value;
        uint64_t inverse;
} LedgerCount;

typedef struct LedgerHead {
        char magic[8];
        uint32_t version;
        uint32_t n_bytes[LEDGER_KINDS]; /* of one record */
        uint32_t n_slots[LEDGER_KINDS];
        uint32_t spare;
        uint64_t check; /* of the fields above, which never change */

        uint64_t writing; /* LEDGER_WRITING() of the record being written; 0: none */
        LedgerCount last_id[_LEDGER_KIND_N];
        LedgerCount n_touched[LEDGER_KINDS]; /* slots from here on never had a record and are 0 */
} LedgerHead;

#define LEDGER_WRITING(kind, slot) (((uint64_t)(kind) + 1) << 32 | (slot))
#define LEDGER_WRITING_COUNT       (((uint64_t)LEDGER_KINDS + 1) << 32)

/* The start of every record except a job's. */
typedef struct LedgerSlot {
        uint64_t check; /* 0: free */
        uint64_t record[];
} LedgerSlot;

/* Two checksums, so that the hand-over stays valid while the end is half written. */
typedef struct LedgerJobSlot {
        uint64_t sent_check; /* of the fields before end_check; 0: free */
        LedgerOwner owner;
        uint64_t order;
        LedgerSent sent;

        uint64_t end_check; /* of all fields but sent_check; 0: the job has not ended */
        uint64_t end_order;
        LedgerEnd end;
        uint32_t n_text;
        uint32_t spare; /* 0 */
        char text[LEDGER_TEXT_MAX + LEDGER_TEXT_PAD];
} LedgerJobSlot;

typedef struct LedgerUser LedgerUser;

typedef enum LedgerPlace {
        LEDGER_FREE,
        LEDGER_HELD,   /* a job refers to it */
        LEDGER_UNSEEN, /* user->unseen: the end was sent to its session */
        LEDGER_SEEN,   /* ledger->seen: may be reused */
} LedgerPlace;

/* One user's records of jobs. Subordinate uids count as their owner. */
struct LedgerUser {
        uint32_t uid;
        LedgerUser *person;        /* itself, or the owner */
        uint32_t n;                /* HELD and UNSEEN */
        uint32_t n_granted;        /* of ledger->quota; `n` may be more after a takeover */
        struct LedgerNodes unseen; /* oldest first */
        UT_hash_handle hh;         /* ledger->users */
};

/* The supervisor's own state of one job's record, outside the shared memory. */
struct LedgerNode {
        TAILQ_ENTRY(LedgerNode) link;      /* the list that `place` names */
        TAILQ_ENTRY(LedgerNode) told_link; /* told->nodes */
        LedgerTold *told;                  /* NULL: none */
        LedgerUser *user;                  /* whom it counts for: HELD and UNSEEN; else NULL */
        uint32_t number;                   /* of told->n_told */
        LedgerPlace place;
};

/* Slots of one kind. */
typedef struct LedgerTable {
        uint8_t *slots;
        uint32_t n_bytes; /* of one */
        uint32_t n_slots;
        uint32_t n_touched;
        uint32_t *free; /* of the slots touched so far */
        uint32_t n_free;
} LedgerTable;

/* A record that existed when the ledger was opened. */
typedef struct LedgerFound {
        uint64_t id;
        uint64_t order;
        uint32_t slot;
} LedgerFound;

struct Ledger {
        int fd;
        LedgerHead *head;
        LedgerTable tables[LEDGER_KINDS];
        LedgerNode *nodes;
        LedgerUser *users;
        LedgerUser *latest; /* the user of the latest look-up; NULL: none */
        LedgerUser nobody;  /* stands in for users when memory is short */
        Quota quota;        /* of job records that cannot be reused yet */
        struct LedgerNodes seen;
        uint32_t n_seen;
        uint64_t order;
        LedgerFound *by_id;
        LedgerFound *by_order;
        size_t n_found;
};

/** ledger_check() - checksum of @n_bytes, a multiple of 8, at slot @slot of @kind. Return: never 0. */
uint64_t ledger_check(unsigned kind, uint32_t slot, const void *data, size_t n_bytes);
/** ledger_begin() - mark this record as being written. */
void ledger_begin(Ledger *ledger, unsigned kind, uint32_t slot);
/** ledger_end() - no record is being written. */
void ledger_end(Ledger *ledger);
/** ledger_set_count() - store a count in the header. */
void ledger_set_count(Ledger *ledger, LedgerCount *count, uint64_t value);
/** ledger_take_slot() - take a free slot. Return: LEDGER_NONE: there is none. */
uint32_t ledger_take_slot(Ledger *ledger, unsigned kind);
/** ledger_put_slot() - mark the slot as free. */
void ledger_put_slot(Ledger *ledger, unsigned kind, uint32_t slot);
/** ledger_users_init() - nobody has a record. */
void ledger_users_init(Ledger *ledger);
/** ledger_users_free() - free all users. */
void ledger_users_free(Ledger *ledger);
/** ledger_users_look_up() - ledger_users_get() of a user that was not the latest one. */
LedgerUser *ledger_users_look_up(Ledger *ledger, uint32_t uid);
/** ledger_users_grant() - take more from the quota. Return: whether the user may have one more record. */
bool ledger_users_grant(Ledger *ledger, LedgerUser *user);
/** ledger_users_return() - give what the user does not need back to the quota. */
void ledger_users_return(Ledger *ledger, LedgerUser *user);

/** ledger_users_get() - the person that this uid's records count for. Never NULL. */
static inline LedgerUser *ledger_users_get(Ledger *ledger, uint32_t uid) {
        LedgerUser *user = ledger->latest;

        return user && user->uid == uid ? user->person : ledger_users_look_up(ledger, uid);
}

/** ledger_users_may_take() - whether the user may have one more record. */
static inline bool ledger_users_may_take(Ledger *ledger, LedgerUser *user) {
        return user->n < user->n_granted || ledger_users_grant(ledger, user);
}

/** ledger_users_take() - the record counts for the user. */
static inline void ledger_users_take(LedgerUser *user, LedgerNode *node) {
        node->user = user;
        user->n++;
}

/** ledger_users_give() - the record counts for nobody. Repeating it is harmless. */
static inline void ledger_users_give(Ledger *ledger, LedgerNode *node) {
        LedgerUser *user = node->user;

        if (!user)
                return;
        node->user = NULL;
        if (--user->n + 2 * LEDGER_GRANT <= user->n_granted)
                ledger_users_return(ledger, user);
}

/** ledger_jobs_open() - check all job records and index those in use. Return: as ledger_open(). */
int ledger_jobs_open(Ledger *ledger);

/*
 * Orders stores as the next supervisor sees them. A compiler barrier is enough: only this process
 * can stop, not the machine.
 */
static inline void ledger_barrier(void) {
        __asm__ __volatile__("" ::: "memory");
}

#endif
