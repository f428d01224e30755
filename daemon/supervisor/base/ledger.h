/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LEDGER_H
#define GPUQ_SUPERVISOR_LEDGER_H

/*
 * Ledger
 *
 * What must be known when this supervisor has been killed and the next one takes
 * over: which sessions, arenas and modules there were, which jobs were
 * handed to a worker, and how jobs ended. It is a memfd that the keeper holds
 * too, mapped here; a job costs it a few stores, no system call and no allocation.
 *
 * A job has a record from when it is handed to a worker, or from its end if it
 * never was. The record of its end stays until the client said that it has read of
 * it, and then as long as there is no better use for the room: `after` and Wait go
 * on finding it. If clients never say so, the oldest ends make room. What kernels printed
 * is not kept.
 *
 * Every record carries a check of itself. The one being written when the writer
 * was killed is known (`writing`) and counts as it was before; any other that does
 * not fit its check is damage, and a damaged ledger is not used at all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/macro.h"

#define LEDGER_VERSION    3u
#define LEDGER_NONE       UINT32_MAX /* no record */
#define LEDGER_SHARED     UINT32_MAX /* no one session's */
#define LEDGER_DEVICE_MAX 64u        /* bytes of a device's uuid, with its end */
#define LEDGER_CLIENT_MAX 72u        /* bytes of a client's name, with its end */
#define LEDGER_TEXT_MAX   160u       /* bytes of an error's text, without its end */
#define LEDGER_JOBS       65536u     /* records of jobs */
#define LEDGER_ENDS_KEPT  4096u      /* ends that were read of, kept for `after` and Wait */

enum {
        _LEDGER_E_SUCCESS,
        LEDGER_E_VERSION, /* of another version: not for us */
        LEDGER_E_DAMAGED, /* cut short, or something in it does not fit its check */
};

typedef enum LedgerKind {
        LEDGER_SESSION,
        LEDGER_ARENA,
        LEDGER_MODULE,
        _LEDGER_KIND_N,
} LedgerKind;

/* One client process that said Hello. */
typedef struct LedgerSession {
        uint32_t id;
        uint32_t uid;
        uint32_t gid;
        int32_t pid;    /* 0: in a namespace that we do not see into */
        uint64_t start; /* when that process began, in the kernel's ticks; 0: unknown */
        char client[LEDGER_CLIENT_MAX];
} LedgerSession;

/* Its descriptor is the keeper's "arena-<id>". */
typedef struct LedgerArena {
        uint64_t id;
        uint64_t size;
        uint32_t uid;
        uint32_t gid;
        uint32_t place;                 /* an ArenaPlace */
        uint32_t session;               /* which has it; LEDGER_SHARED: several had; 0: none yet */
        char device[LEDGER_DEVICE_MAX]; /* uuid, of a device arena */
} LedgerArena;

typedef struct LedgerModule {
        uint64_t id;
        uint64_t image; /* arena; 0: built-in */
        uint32_t session;
        uint32_t has_variables;
        uint32_t is_used; /* a job may have changed them; they live in its worker alone */
        uint32_t spare;   /* 0 */
} LedgerModule;

/* Whose job it is. */
typedef struct LedgerOwner {
        uint64_t id; /* of the job */
        uint32_t uid;
        uint32_t gid;
} LedgerOwner;

/* Where it is. */
typedef struct LedgerSent {
        uint32_t is_sent; /* to a worker */
        uint32_t retries; /* as often was it handed to others before */
} LedgerSent;

/* How a job ended. */
typedef struct LedgerEnd {
        int32_t state; /* a JobState */
        int32_t code;  /* 0 when done */
        uint32_t root; /* as in Failure */
        uint32_t device;
        uint64_t waited_us;
        uint64_t ran_us;
        uint64_t gpu_ns;
} LedgerEnd;

typedef enum LedgerJobState {
        LEDGER_UNKNOWN, /* no record: it was in no worker, and has not ended */
        LEDGER_WAITING, /* it was in one that ended, and waits again */
        LEDGER_SENT,    /* handed to a worker */
        LEDGER_ENDED,
} LedgerJobState;

/* What the ledger says of a job. */
typedef struct LedgerJob {
        LedgerOwner owner;
        uint32_t slot;
        LedgerJobState state;
        LedgerSent sent;  /* the last time */
        uint64_t order;   /* of what was handed to workers, and of ends */
        LedgerEnd end;    /* ENDED */
        const char *text; /* of its failure; "" if there is none */
} LedgerJob;

typedef struct LedgerNode LedgerNode;
TAILQ_HEAD(LedgerNodes, LedgerNode);

/* Ends that one session was told, until it said that it has read them. */
typedef struct LedgerTold {
        struct LedgerNodes nodes; /* in the order in which they were told */
        uint32_t n_told;
} LedgerTold;

typedef struct Ledger Ledger;

/** ledger_new() - empty. Return: 0, or a negative errno. */
int ledger_new(Ledger **ret_ledger);
/**
 * ledger_open() - what another supervisor left; @fd is consumed in any case
 *
 * Return: 0, LEDGER_E_VERSION, LEDGER_E_DAMAGED, or a negative errno.
 */
int ledger_open(int fd, Ledger **ret_ledger);
/** ledger_free() - what is written stays written, for whoever holds the memfd; NULL is fine. Return: NULL. */
Ledger *ledger_free(Ledger *ledger);
DEFINE_CLEANUP(Ledger, ledger_free)
/**
 * ledger_leave() - what is written from now on nobody sees: the next supervisor finds it as it is
 *
 * Return: 0, or a negative errno.
 */
int ledger_leave(Ledger *ledger);
/** ledger_fd() - the memfd; stays the ledger's. */
int ledger_fd(const Ledger *ledger);

/* ---- numbers ---- */

/** ledger_last_id() - the last number that was given to one of this kind. */
uint64_t ledger_last_id(const Ledger *ledger, LedgerKind kind);
/** ledger_note_id() - that number is used up, whatever becomes of it. */
void ledger_note_id(Ledger *ledger, LedgerKind kind, uint64_t id);

/* ---- sessions, arenas, modules ---- */

/** ledger_add() - @record: a LedgerSession, … of that @kind. Return: its slot, or LEDGER_NONE: there is no room. */
uint32_t ledger_add(Ledger *ledger, LedgerKind kind, const void *record);
/**
 * ledger_change() - write it again; LEDGER_NONE is fine
 *
 * Killed meanwhile, it leaves the old one, the new one, or both.
 *
 * Return: its slot from now on.
 */
uint32_t ledger_change(Ledger *ledger, LedgerKind kind, uint32_t slot, const void *record);
/** ledger_drop() - no more; LEDGER_NONE is fine. */
void ledger_drop(Ledger *ledger, LedgerKind kind, uint32_t slot);
/**
 * ledger_next() - walk over the records of a kind
 * @slot: LEDGER_NONE to begin; set to the one returned. Dropping that one meanwhile is fine.
 *
 * Return: a LedgerSession, …, or NULL: no more.
 */
const void *ledger_next(const Ledger *ledger, LedgerKind kind, uint32_t *slot);

/* ---- jobs ---- */

/**
 * ledger_job_sent() - it is about to be handed to a worker; before it is written to the ring
 * @slot: the job's record, or LEDGER_NONE: it has none yet
 *
 * Return: its record, or LEDGER_NONE: every record is of a job in a worker.
 */
uint32_t ledger_job_sent(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                         const LedgerSent *sent);
/**
 * ledger_job_waits() - it is in no worker any more, and waits again; a record that says no more goes
 * @slot: its record, or LEDGER_NONE
 *
 * Return: its record from now on, or LEDGER_NONE.
 */
uint32_t ledger_job_waits(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                          uint32_t retries);
/** ledger_job_dropped() - there is no such job any more: its record goes. LEDGER_NONE is fine. */
void ledger_job_dropped(Ledger *ledger, uint32_t slot);
/**
 * ledger_job_ended() - before anybody is told
 * @slot: its record, or LEDGER_NONE: it was in no worker
 * @text: of its failure, or NULL
 *
 * Return: its record, or LEDGER_NONE: there is no room, the end will not be remembered.
 */
uint32_t ledger_job_ended(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                          const LedgerEnd *end, const char *text);
/** ledger_job_forgone() - nobody is there to be told of this end: the record may go. LEDGER_NONE is fine. */
void ledger_job_forgone(Ledger *ledger, uint32_t slot);

/** ledger_told_init() - of a session that was told nothing yet. */
void ledger_told_init(LedgerTold *told);
/** ledger_job_told() - its session was told of the end that this record has, LEDGER_NONE if none has. */
void ledger_job_told(Ledger *ledger, uint32_t slot, LedgerTold *told);
/** ledger_told_seen() - the session has read of so many ends, in all: their records may go. */
void ledger_told_seen(Ledger *ledger, LedgerTold *told, uint32_t n_seen);
/** ledger_told_close() - the session is gone: all may go. */
void ledger_told_close(Ledger *ledger, LedgerTold *told);

/* ---- taking over ---- */

/** ledger_find_job() - as it was when the ledger was opened. Return: false: UNKNOWN, and *ret_job says so. */
bool ledger_find_job(const Ledger *ledger, uint64_t id, LedgerJob *ret_job);
/** ledger_next_job() - every record there was when the ledger was opened, by @LedgerJob.order. @i: from 0. Return: false: no more. */
bool ledger_next_job(const Ledger *ledger, size_t *i, LedgerJob *ret_job);
/** ledger_first_job_of() - Return: what ledger_next_job_of() begins with. */
size_t ledger_first_job_of(const Ledger *ledger, uint32_t session);
/** ledger_next_job_of() - the same for the jobs of one session alone. */
bool ledger_next_job_of(const Ledger *ledger, uint32_t session, size_t *i, LedgerJob *ret_job);

#endif
