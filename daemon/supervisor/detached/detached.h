/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DETACHED_H
#define GPUQ_SUPERVISOR_DETACHED_H

/*
 * Detached jobs
 *
 * They live on disk (spool.h) and outlive their client, the supervisor, the daemon
 * and the machine's uptime. One is acknowledged when all of it is synced. Then, a
 * few of each user at a time, its bytes are read back into an arena of its own, its
 * modules are loaded, and it is a job like any other, of a session that is the
 * daemon's own. How it ended is told once that is synced, with what it wrote. A
 * supervisor that dies before that finds it on disk as it was, and it runs again:
 * what is on disk of its input never changes, so that is harmless.
 *
 *     STORING --> QUEUED --> LOADING --> LINKING --> SUBMITTED --> ENDING --> ENDED --> REMOVING --> freed
 *                   ^            |           |            |  |      ^
 *                   |            +-----------+------------|--+------+  failed, cancelled
 *                   +------------+------------------------+  no memory; half written
 *
 *     DAMAGED: what is on disk is not what was written there, at any time
 *
 * The disk is touched in threads alone (disk.h), one call for one job at a time. What
 * such a call reads of a Detached does not change meanwhile.
 *
 * Ids are below 2^32: those of a session 0, which nobody has. The job that runs for one
 * has another, of the session that is the daemon's own.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "jobs.h"
#include "disk.h"
#include "clients.h"
#include "spool.h"
#include "util/table.h"

#define DETACHED_NOTE_MAX     (64u << 10)  /* bytes */
#define DETACHED_LOADED_JOBS  8u           /* of one user, in memory at once */
#define DETACHED_LOADED_BYTES (1ull << 30) /* likewise, in arenas, beyond the first job's */
#define DETACHED_RETRY_MS     1000u        /* after a lack of memory or of room on the disk */
#define DETACHED_RETRY_MAX_MS 60000u
#define DETACHED_RERUNS_MAX   3u  /* after other jobs' faults */
#define DETACHED_SWEEP_S      60u /* how often results are looked at that are too old */
#define DETACHED_OPEN_MS      10000u /* the disk may take so long before clients are let in without it */
#define DETACHED_BUSY_MS      2000u /* so may whoever has the folder, and should just be ending */

typedef struct Detached Detached;
typedef struct DetachedOwner DetachedOwner;
typedef struct DetachedTable DetachedTable;

typedef enum DetachedState {
        DETACHED_STORING, /* not acknowledged yet */
        DETACHED_QUEUED,
        DETACHED_LOADING, /* its bytes are read */
        DETACHED_LINKING, /* its modules are loaded */
        DETACHED_SUBMITTED,
        DETACHED_ENDING, /* how it ended is written */
        DETACHED_ENDED,
        DETACHED_REMOVING,
        DETACHED_DAMAGED,
} DetachedState;

/* A request that is answered later. */
typedef enum DetachedWhat {
        DETACHED_ASK_DETACH,
        DETACHED_ASK_WAIT,
        DETACHED_ASK_FETCH,
        DETACHED_ASK_DISCARD,
} DetachedWhat;

typedef struct DetachedAsk {
        DetachedWhat what;
        Session *session; /* NULL once it is gone, while a thread reads for it */
        uint32_t serial;
        Detached *detached;
        LIST_ENTRY(DetachedAsk) session_link;  /* session->asks */
        LIST_ENTRY(DetachedAsk) detached_link; /* detached->asks */
        DiskCall call;                         /* FETCH: reads the output into its arena */
        Arena *arena;
        int r;
        SpoolProblem problem;
} DetachedAsk;

struct Detached {
        uint32_t number;
        uint32_t uid;
        DetachedTable *table;
        DetachedOwner *owner;       /* NULL: DAMAGED from the start */
        TAILQ_ENTRY(Detached) link; /* owner->queued, while QUEUED */
        UT_hash_handle hh;          /* table->jobs */

        DetachedState state;
        Gpuq__Spool__Record *record; /* NULL: as above */
        Gpuq__Spool__End *end;       /* from ENDING on */
        char *damage;                /* DAMAGED: what is wrong */

        DiskCall call;
        int r; /* of the call that a thread made */
        SpoolProblem problem;
        SpoolPart *input;  /* STORING: of each extent */
        SpoolPart *images; /* STORING: of each module */
        Arena **held;      /* STORING: what those are parts of; with it a NULL at the end */

        Arena *arena;          /* from LOADING on, until ENDED */
        Arena **image_arenas;  /* likewise, of each module; NULL of a built-in one */
        Module **modules;      /* from LINKING on */
        unsigned n_linking;    /* modules that are not ready */
        uint64_t loaded_bytes; /* counted in its owner's; 0: not loaded */

        LIST_HEAD(, DetachedAsk) asks;
        unsigned n_readers; /* threads that read its output */
        unsigned n_retries;
        unsigned n_reruns;
        uint64_t retry_ns; /* ENDING: when to try again; 0: not */
        char reason[160];  /* why it is not further; "" */
        UserCharge jobs_charge;
        UserCharge bytes_charge;

        bool is_working : 1; /* a thread is at it */
        bool is_cancelled : 1;
        bool is_rerun : 1; /* ENDING: it did not end, it runs again from the start */
        uid_t cancelled_by;
};

/* One user's detached jobs. */
struct DetachedOwner {
        uint32_t uid;
        DetachedTable *table;
        User *user;
        Session *session;                           /* the daemon's own, for its jobs */
        TAILQ_HEAD(DetachedQueue, Detached) queued; /* by priority, then number */
        unsigned n_loaded;
        uint64_t loaded_bytes;
        uint64_t retry_ns; /* nothing is loaded before; 0: now */
        UT_hash_handle hh; /* table->owners */
};

struct DetachedTable {
        Supervisor *supervisor;
        Disk *disk;   /* NULL: there is none */
        char *folder; /* that the spool is in */
        Spool *spool; /* NULL: detached jobs cannot be kept, problem says why */
        char problem[300];
        Detached *jobs;
        DetachedOwner *owners;
        uint32_t last; /* number that was given */
        uint64_t sweep_ns;
        uint64_t open_ns;  /* when the disk was asked first for what is there */
        uint64_t retry_ns; /* it is not asked again before */
        uint64_t busy_ns; /* when another process was first found to have the folder; 0: none has */
        bool is_known;    /* what is on disk is known, or there is no disk */
        struct DetachedScan *scan; /* under way, or to be taken in; NULL: neither */
        bool is_stopped;
        bool is_late; /* clients were let in before it was known */
};

/* ---- the table: detached.c ------------------------------------------------- */

/** detached_start() - find out what is on disk. Return: 0, or a negative errno. */
int detached_start(Supervisor *supervisor);
/** detached_take_in() - what was found, once all is known of the supervisor before us. */
void detached_take_in(Supervisor *supervisor);
/** detached_check_id() - Return: NULL: if @id is a detached job, it is in the table; or why that cannot be said now. */
Failure *detached_check_id(const Supervisor *supervisor, uint64_t id);
/** detached_is_known() - clients may be let in: it is, or cannot be now. */
bool detached_is_known(const Supervisor *supervisor);
/** detached_tick() - what is due. */
void detached_tick(Supervisor *supervisor, uint64_t now_ns);
/** detached_stop() - nothing is begun any more, and its sessions end. */
void detached_stop(Supervisor *supervisor);
/** detached_close() - its handles; the loop goes on until the disk has done what was begun. */
void detached_close(Supervisor *supervisor);
/** detached_free() - once the loop has run out. */
void detached_free(Supervisor *supervisor);

/** detached_first() - of all, by hh.next. */
Detached *detached_first(const Supervisor *supervisor);
/** detached_count() - how many there are. */
size_t detached_count(const Supervisor *supervisor);
/** detached_find() - Return: NULL: none of that id. */
Detached *detached_find(const Supervisor *supervisor, uint64_t id);
/** detached_is_id() - is it one of a detached job? */
bool detached_is_id(uint64_t id);
/** detached_id() - of a job. */
uint64_t detached_id(const Detached *detached);
/** detached_new() - of @uid, in the table. Return: 0, or -ENOMEM. */
int detached_new(DetachedTable *table, uint32_t number, uint32_t uid, Detached **ret_detached);
/** detached_own() - give it its owner, by its record. Return: 0, or a negative errno. */
int detached_own(Detached *detached);
/** detached_end_it() - out of the table, with its asks refused. */
void detached_end_it(Detached *detached);
/** detached_bytes() - what it takes on disk, at most. */
uint64_t detached_bytes(const Gpuq__Spool__Record *record);

/* ---- one job's way: detached_run.c ----------------------------------------- */

/** detached_store() - write it, then acknowledge and queue it. */
void detached_store(Detached *detached);
/** detached_enqueue() - it is on disk and waits for its turn. */
void detached_enqueue(Detached *detached);
/** detached_admit() - load what there is room for. */
void detached_admit(DetachedOwner *owner);
/** detached_retry() - a thread's call that came to nothing is made again. */
void detached_retry(Detached *detached);
/** detached_cancel() - Return: false: it has ended already. */
bool detached_cancel(Detached *detached, uid_t by);
/** detached_remove() - from the disk; it is ENDED and nobody reads it. */
void detached_remove(Detached *detached);
/** detached_damage() - set aside already, or not to be: tell everybody. */
void detached_damage(Detached *detached, const char *what);
/** detached_release() - arenas and modules go. Twice is harmless. */
void detached_release(Detached *detached);
/** detached_release_sources() - what it was to be stored from. Twice is harmless. */
void detached_release_sources(Detached *detached);
/** detached_release_modules() - the modules alone. */
void detached_release_modules(Detached *detached);
/** detached_owner_hooks - what its session calls. */
extern const SessionOwner detached_owner_hooks;

/* ---- a new one: detached_draft.c ------------------------------------------- */

/** detached_fill() - its record, its owner, what it is stored from and its charges. Return: NULL, or why not. */
Failure *detached_fill(Detached *detached, const Session *session, const Gpuq__V1__Detach *detach,
                       const JobSpec *spec);

/* ---- requests: detached_request.c ------------------------------------------ */

/** session_detach() - check it, and answer once it is stored. */
void session_detach(Session *session, uint32_t serial, const Gpuq__V1__Detach *detach);
/** session_fetch() - answer once it has ended. */
void session_fetch(Session *session, uint32_t serial, uint64_t id);
/** session_discard_job() - answer once it is removed. */
void session_discard_job(Session *session, uint32_t serial, uint64_t id);
/** session_wait_detached() - answer once it has ended. Return: false: there is no such detached job. */
bool session_wait_detached(Session *session, uint32_t serial, uint64_t id);
/** detached_answer() - whoever asked for what has become true. */
void detached_answer(Detached *detached);
/** detached_refuse() - everybody who asked for @what, or for anything with -1. Consumes @failure. */
void detached_refuse(Detached *detached, int what, Failure *failure);
/** detached_drop_asks() - the session ends. */
void detached_drop_asks(Session *session);

#endif
