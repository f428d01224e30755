/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LEDGER_H
#define GPUQ_SUPERVISOR_LEDGER_H

/*
 * Ledger
 *
 * What the next supervisor must know when this one is killed: which sessions, arenas and modules
 * existed, which jobs were handed to a worker, and how jobs ended. The ledger is a memfd that the
 * keeper holds too, mapped here. A job costs a few stores, no system call and no allocation.
 *
 * A job's record is created when the job is handed to a worker, or at its end if it never was.
 * The record of an end stays until the client acknowledges it, and after that until its space
 * is needed: `after` and Wait still find it. Records of jobs that cannot be reused yet are divided
 * among users (policy/quota.h): if a user's clients never acknowledge, that user's oldest ends are
 * overwritten, and nobody else's. The output of kernels is not kept.
 *
 * Every record carries a checksum. The record that was being written when the writer was killed
 * is known (`writing`) and counts as it was before. Any other record that does not match its
 * checksum is damage, and a damaged ledger is not used at all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/macro.h"

#define LEDGER_VERSION    3u
#define LEDGER_NONE       UINT32_MAX /* no record */
#define LEDGER_SHARED     UINT32_MAX /* of several sessions */
#define LEDGER_DEVICE_MAX 56u        /* bytes of a device's uuid, with terminator */
#define LEDGER_CLIENT_MAX 72u        /* bytes of a client's name, with terminator */
#define LEDGER_TEXT_MAX   160u       /* bytes of an error's text, without terminator */
#define LEDGER_SESSIONS   8192u
#define LEDGER_ARENAS     65536u
#define LEDGER_MODULES    16384u
#define LEDGER_JOBS       65536u /* records of jobs */
#define LEDGER_ENDS_KEPT  4096u  /* acknowledged ends kept for `after` and Wait */

enum {
        _LEDGER_E_SUCCESS,
        LEDGER_E_VERSION, /* written by another version of the supervisor */
        LEDGER_E_DAMAGED, /* truncated, or a record does not match its checksum */
};

typedef enum LedgerKind {
        LEDGER_SESSION,
        LEDGER_ARENA,
        LEDGER_MODULE,
        _LEDGER_KIND_N,
} LedgerKind;

/* One client process that sent Hello. */
typedef struct LedgerSession {
        uint32_t id;
        uint32_t uid;
        uint32_t gid;
        int32_t pid;    /* 0: in a namespace that the supervisor cannot see into */
        uint64_t start; /* when that process started, in the kernel's ticks; 0: unknown */
        char client[LEDGER_CLIENT_MAX];
} LedgerSession;

/* The keeper holds its descriptor as "arena-<id>". */
typedef struct LedgerArena {
        uint64_t id;
        uint64_t size;
        uint32_t uid;
        uint32_t gid;
        uint32_t place;   /* an ArenaPlace */
        uint32_t session; /* the session that has it; LEDGER_SHARED: several had; 0: none yet */
        char device[LEDGER_DEVICE_MAX]; /* uuid, of a device arena */
        uint64_t address;               /* of a device arena, in all workers; 0: none */
} LedgerArena;

typedef struct LedgerModule {
        uint64_t id;
        uint64_t image; /* arena; 0: built-in */
        uint32_t session;
        uint32_t has_variables;
        uint32_t
                is_used; /* a job may have changed the variables, which exist in its worker alone */
        uint32_t spare;  /* 0 */
} LedgerModule;

/* The owner of a job. */
typedef struct LedgerOwner {
        uint64_t id; /* of the job */
        uint32_t uid;
        uint32_t gid;
} LedgerOwner;

/* Where the job is. */
typedef struct LedgerSent {
        uint32_t is_sent; /* to a worker */
        uint32_t retries; /* how often the job was handed to other workers before */
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
        LEDGER_UNKNOWN, /* no record: the job was in no worker and has not ended */
        LEDGER_WAITING, /* its worker ended, and the job waits again */
        LEDGER_SENT,    /* handed to a worker */
        LEDGER_ENDED,
} LedgerJobState;

/* The ledger's record of a job. */
typedef struct LedgerJob {
        LedgerOwner owner;
        uint32_t slot;
        LedgerJobState state;
        LedgerSent sent;  /* the latest hand-over */
        uint64_t order;   /* of hand-overs to workers and of ends */
        LedgerEnd end;    /* ENDED */
        const char *text; /* of its failure; "" if there is none */
} LedgerJob;

typedef struct LedgerNode LedgerNode;
TAILQ_HEAD(LedgerNodes, LedgerNode);

/* Ends that were sent to one session and that it has not acknowledged. */
typedef struct LedgerTold {
        struct LedgerNodes nodes; /* in the order in which they were sent */
        uint32_t n_told;
} LedgerTold;

typedef struct Ledger Ledger;

/** ledger_new() - empty. Return: 0, or a negative errno. */
int ledger_new(Ledger **ret_ledger);
/**
 * ledger_open() - open what another supervisor left; @fd is consumed in any case
 *
 * Return: 0, LEDGER_E_VERSION, LEDGER_E_DAMAGED, or a negative errno.
 */
int ledger_open(int fd, Ledger **ret_ledger);
/** ledger_free() - records stay as they are for other holders of the memfd; NULL is fine. Return: NULL. */
Ledger *ledger_free(Ledger *ledger);
DEFINE_CLEANUP(Ledger, ledger_free)
/**
 * ledger_leave() - detach from the memfd: later writes are private, so the next supervisor finds it
 * unchanged
 *
 * Return: 0, or a negative errno.
 */
int ledger_leave(Ledger *ledger);
/** ledger_fd() - the memfd, owned by the ledger. */
int ledger_fd(const Ledger *ledger);

/* ---- numbers ---- */

/** ledger_last_id() - the last number that was given to an object of this kind. */
uint64_t ledger_last_id(const Ledger *ledger, LedgerKind kind);
/** ledger_note_id() - mark that number as used. */
void ledger_note_id(Ledger *ledger, LedgerKind kind, uint64_t id);

/* ---- sessions, arenas, modules ---- */

/** ledger_add() - @record: a LedgerSession, … of that @kind. Return: its slot, or LEDGER_NONE: the table is full. */
uint32_t ledger_add(Ledger *ledger, LedgerKind kind, const void *record);
/**
 * ledger_change() - replace the record; LEDGER_NONE is fine
 *
 * If the supervisor is killed meanwhile, the old record, the new one or both remain.
 *
 * Return: its new slot.
 */
uint32_t ledger_change(Ledger *ledger, LedgerKind kind, uint32_t slot, const void *record);
/** ledger_drop() - delete the record; LEDGER_NONE is fine. */
void ledger_drop(Ledger *ledger, LedgerKind kind, uint32_t slot);
/**
 * ledger_next() - walk over the records of a kind
 * @slot: LEDGER_NONE to begin; set to the slot returned. The caller may drop that record.
 *
 * Return: a LedgerSession, …, or NULL at the end.
 */
const void *ledger_next(const Ledger *ledger, LedgerKind kind, uint32_t *slot);

/* ---- users ---- */

/** ledger_join() - records of this uid count for that person. Return: 0, or -ENOMEM. */
int ledger_join(Ledger *ledger, uint32_t uid, uint32_t person);
/** ledger_forget() - the uid is gone: free what is known of it. A person outlives the uids that joined it. */
void ledger_forget(Ledger *ledger, uint32_t uid);

/* ---- jobs ---- */

/**
 * ledger_job_sent() - record that the job is handed to a worker; call it before the job is written
 * to the ring
 * @slot: the job's record, or LEDGER_NONE: it has none yet
 *
 * Return: its record, or LEDGER_NONE: all records of this user belong to jobs in workers or to ends
 * that no client has read.
 */
uint32_t ledger_job_sent(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                         const LedgerSent *sent);
/**
 * ledger_job_waits() - the job left its worker and waits again; a record that says nothing more is
 * deleted
 * @slot: its record, or LEDGER_NONE
 *
 * Return: its new record, or LEDGER_NONE.
 */
uint32_t ledger_job_waits(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                          uint32_t retries);
/** ledger_job_dropped() - the job no longer exists: delete its record. LEDGER_NONE is fine. */
void ledger_job_dropped(Ledger *ledger, uint32_t slot);
/**
 * ledger_job_ended() - record the end; call it before any client is told
 * @slot: its record, or LEDGER_NONE: it was in no worker
 * @text: of its failure, or NULL
 *
 * Return: its record, or LEDGER_NONE: the user has too many, and the end is not remembered.
 */
uint32_t ledger_job_ended(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                          const LedgerEnd *end, const char *text);
/** ledger_job_forgone() - no client is left to receive this end: its record may be reused. LEDGER_NONE is fine. */
void ledger_job_forgone(Ledger *ledger, uint32_t slot);

/** ledger_told_init() - for a session that was sent no end yet. */
void ledger_told_init(LedgerTold *told);
/** ledger_job_told() - the end in this record was sent to its session; LEDGER_NONE if the end has no record. */
void ledger_job_told(Ledger *ledger, uint32_t slot, LedgerTold *told);
/** ledger_told_seen() - the session acknowledged @n_seen ends in all: their records may be reused. */
void ledger_told_seen(Ledger *ledger, LedgerTold *told, uint32_t n_seen);
/** ledger_told_close() - the session is gone: all its records may be reused. */
void ledger_told_close(Ledger *ledger, LedgerTold *told);

/* ---- taking over ---- */

/** ledger_find_job() - the job as it was when the ledger was opened. Return: false: UNKNOWN, and *ret_job says so. */
bool ledger_find_job(const Ledger *ledger, uint64_t id, LedgerJob *ret_job);
/**
 * ledger_next_job() - walk over all records found at opening, by LedgerJob.order
 *
 * @i: from 0.
 *
 * Return: false at the end.
 */
bool ledger_next_job(const Ledger *ledger, size_t *i, LedgerJob *ret_job);
/** ledger_first_job_of() - Return: the initial index for ledger_next_job_of(). */
size_t ledger_first_job_of(const Ledger *ledger, uint32_t session);
/** ledger_next_job_of() - the same for the jobs of one session. */
bool ledger_next_job_of(const Ledger *ledger, uint32_t session, size_t *i, LedgerJob *ret_job);

#endif
