/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DETACHED_STATE_H
#define GPUQ_SUPERVISOR_DETACHED_STATE_H

/*
 * One detached job and the table of all
 *
 *     STORING --> QUEUED --> LOADING --> LINKING --> SUBMITTED --> ENDING --> ENDED --> REMOVING --> freed
 *                   ^            |           |            |  |      ^ |
 *                   |            +-----------+------------|--+------+ |  failed, cancelled
 *                   +------------+------------------------+-----------+  no memory; half written
 *
 *     DAMAGED, at any time: the content of the disk is not what was written there
 *
 * Threads touch the disk (base/disk.h), with one call per job at a time. The parts of a Detached that such
 * a call reads do not change meanwhile.
 *
 * The job that runs for a detached job has another id each time, of its owner's submitter. The end of
 * an earlier run is therefore never taken for this run's.
 */

#include <sys/queue.h>

#include <uv.h>

#include "detached.h"
#include "store.h"
#include "util/table.h"

#define DETACHED_THREADS      4u /* a large job occupies one of them */
#define DETACHED_UNPACKED     4u /* a message in memory takes so many times its packed bytes */
#define DETACHED_NOTE_MAX     (64u << 10)  /* bytes */
#define DETACHED_LOADED_JOBS  8u           /* of one user, in memory at once */
#define DETACHED_LOADED_BYTES (1ull << 30) /* likewise, in arenas, beyond the first job's */
#define DETACHED_PRIORITY_MIN (-100)
#define DETACHED_PRIORITY_MAX 100
#define DETACHED_RETRY_MS     1000u /* after a lack of memory or of space on the disk */
#define DETACHED_RETRY_MAX_MS 60000u
#define DETACHED_RERUNS_MAX   3u  /* after other jobs' faults */
#define DETACHED_SWEEP_S      60u /* between searches for expired results */
#define DETACHED_OPEN_MS                                                                           \
        10000u /* after which clients may connect although the disk does not answer */
#define DETACHED_BUSY_MS                                                                           \
        2000u /* the same while another gpuqd, which may be ending, has the store */

typedef struct Detached Detached;
typedef struct DetachedAsk DetachedAsk;
typedef struct DetachedLine DetachedLine;
typedef struct DetachedOwner DetachedOwner;
typedef struct DetachedScan DetachedScan;

typedef enum DetachedState {
        DETACHED_STORING, /* not acknowledged yet */
        DETACHED_QUEUED,
        DETACHED_LOADING, /* its bytes are being read */
        DETACHED_LINKING, /* its modules are being loaded */
        DETACHED_SUBMITTED,
        DETACHED_ENDING, /* its end is being written; without an end: it will run again */
        DETACHED_ENDED,
        DETACHED_REMOVING,
        DETACHED_DAMAGED,
} DetachedState;

/* A request with a later answer. */
typedef enum DetachedWhat {
        DETACHED_ASK_DETACH,
        DETACHED_ASK_WAIT,
        DETACHED_ASK_FETCH,
        DETACHED_ASK_DISCARD,
        DETACHED_ASK_ANY,
} DetachedWhat;

struct Detached {
        StoredJob stored;
        DetachedTable *table;
        DetachedOwner *owner;       /* NULL: DAMAGED when the store was read */
        TAILQ_ENTRY(Detached) link; /* owner->queued, while QUEUED */
        uint64_t key;               /* the client's, to find it again; 0: none */
        UT_hash_handle hh_key;      /* owner->keys, if it has one */
        UT_hash_handle hh;          /* table->jobs */

        DetachedState state;
        DiskCall call;
        uint64_t n_held; /* STORING: bytes on disk that its user is charged for, with it */
        int r;           /* the result of the thread's call */
        char damage[PAYLOAD_DAMAGE_MAX];
        PayloadPart *parts; /* memory that the call reads or writes */
        size_t n_parts;

        Arena **arenas; /* STORING: of its parts; LOADING to ENDING: its data, then each module's image */
        size_t n_arenas;
        Module **modules;      /* from LINKING on; NULL for a module that is not made yet */
        unsigned n_linking;    /* modules that are not ready */
        uint64_t loaded_bytes; /* counted for its owner; 0: not loaded */

        LIST_HEAD(, DetachedAsk) asks;
        unsigned n_readers; /* threads that read its output */
        unsigned n_retries;
        unsigned n_reruns;
        uint64_t retry_ns; /* ENDING: time of the next try; 0: none */
        char reason[160];  /* why it does not progress; "": no reason */
        UserCharge jobs_charge;
        UserCharge bytes_charge;
        UserCharge record_charge; /* for what of it is in memory */
        User *cancelled_by;       /* held; NULL: not cancelled */
};

/* By priority, the highest first; each by number. A list for each priority, as one list of many jobs
 * would be searched for each job's place. */
TAILQ_HEAD(DetachedQueue, Detached);
#define DETACHED_QUEUES (DETACHED_PRIORITY_MAX - DETACHED_PRIORITY_MIN + 1)

/* The calls to the disk of all uids of one person. */
struct DetachedLine {
        DiskLine disk;
        uint32_t uid; /* the person's */
        unsigned n_owners;
        UT_hash_handle hh; /* table->lines */
};

/* One user's detached jobs. */
struct DetachedOwner {
        uint32_t uid;
        DetachedTable *table;
        User *user;
        Submitter submitter; /* of its jobs */
        struct DetachedQueue queued[DETACHED_QUEUES];
        Detached *keys;     /* jobs by their client's key */
        DetachedLine *line; /* its person's */
        unsigned n_jobs;    /* that have this owner */
        unsigned n_loaded;
        uint64_t loaded_bytes;
        uint64_t retry_ns; /* no loading before; 0: at once */
        UT_hash_handle hh; /* table->owners */
};

struct DetachedTable {
        DetachedHost host;
        Engine *engine;
        Disk *disk;   /* NULL: there are no threads */
        char *folder; /* of the store */
        Store *store; /* NULL: detached jobs cannot be stored; problem says why */
        char problem[300];
        Detached *jobs;
        DetachedOwner *owners;
        DetachedLine *lines;
        uint32_t last; /* the last number given out */
        uint64_t sweep_ns;
        uint64_t let_in_ns; /* when clients may connect although the store was not read yet */
        uint64_t retry_ns;  /* no call to the disk before */
        DiskLine line;      /* calls that are no user's */
        DetachedScan *scan; /* reading the store, or read and not applied yet; NULL: neither */
        bool is_known;      /* the content of the store is known, or there is no store */
        bool is_late;       /* clients connected before it was known */
        bool has_begun;     /* detached_begin() */
        bool is_stopped;
};

/* ---- detached.c: the table --------------------------------------------------- */

/** detached_find() - Return: NULL: no job has this id. */
Detached *detached_find(const DetachedTable *table, uint64_t id);
/** detached_id() - its public id. */
uint64_t detached_id(const Detached *detached);
/** detached_make() - a new entry in the table. Return: 0, or -ENOMEM. */
int detached_make(DetachedTable *table, uint32_t number, uint32_t uid, Detached **ret_detached);
/** detached_own() - set its owner from its record. Return: 0, or a negative errno. */
int detached_own(Detached *detached);
/** detached_destroy() - remove it from the table, and refuse its pending requests. */
void detached_destroy(Detached *detached);
/** detached_find_key() - a job of @uid with this key. Return: NULL: there is none. */
Detached *detached_find_key(const DetachedTable *table, uint32_t uid, uint64_t key);
/** load_bytes() - of a module's image and the headers behind it. */
static inline uint64_t load_bytes(const Gpuq__V1__ModuleLoad *load) {
        return load->length + load->header_bytes;
}
/** detached_bytes() - its largest size on disk. */
uint64_t detached_bytes(const Detached *detached);
/** detached_record_bytes() - what its record takes here. */
uint64_t detached_record_bytes(const Detached *detached);
/** detached_job() - the job to run. */
Gpuq__V1__Job *detached_job(const Detached *detached);

/* ---- draft.c: a new one ------------------------------------------------------ */

/** detached_fill() - set its record, owner, parts and charges. Return: NULL, or why not. */
Failure *detached_fill(Detached *detached, const Session *session, const Gpuq__V1__Detach *detach,
                       const JobSpec *spec);

/* ---- run.c: from a client's memory to the disk, through a worker, and back ----- */

/** detached_submitter_ops - the callbacks of all owners' submitters. */
extern const SubmitterOps detached_submitter_ops;

/** detached_store() - write it to disk, then acknowledge and queue it. */
void detached_store(Detached *detached);
/** detached_enqueue() - it is on disk and waits for its turn. */
void detached_enqueue(Detached *detached);
/** detached_unqueue() - it is QUEUED, and no longer waits. */
void detached_unqueue(Detached *detached);
/** detached_admit() - load queued jobs as far as the limits allow. */
void detached_admit(DetachedOwner *owner);
/** detached_retry() - write its end once more, or run it again. */
void detached_retry(Detached *detached);
/** detached_cancel() - Return: false: it has ended already. */
bool detached_cancel(Detached *detached, User *by);
/** detached_remove() - remove it from the disk; it must be ENDED without readers. */
void detached_remove(Detached *detached);
/** detached_damaged() - report the damage to all that asked. */
void detached_damaged(Detached *detached, const char *what);
/** detached_release() - release arenas and modules. Repeating it is harmless. */
void detached_release(Detached *detached);
/** detached_release_modules() - release the modules only. */
void detached_release_modules(Detached *detached);
/** detached_is_ending() - its end is being written to disk. */
bool detached_is_ending(const Detached *detached);

/* ---- ask.c: requests, and their answers when they are due ----------------------- */

/** detached_answer() - answer the requests whose condition is met. */
void detached_answer(Detached *detached);
/** detached_refuse() - refuse all requests of kind @what. Consumes @failure. */
void detached_refuse(Detached *detached, DetachedWhat what, Failure *failure);

#endif
