/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_JOB_H
#define GPUQ_SUPERVISOR_JOB_H

/*
 * Job
 *
 * What a client wants run, from submit to its one end. Holds its arenas and
 * modules, and its edges to jobs that go before and after it. Who runs when is
 * the scheduler's; what an end entails is in ending.h.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "arena.h"
#include "base.h"
#include "policy.h"
#include "delivery.h"
#include "device.h"
#include "user.h"
#include "util/macro.h"
#include "util/table.h"

typedef struct Arena Arena;
typedef struct Device Device;
typedef struct Executor Executor;
typedef struct Instance Instance;
typedef struct Job Job;
typedef struct Module Module;
typedef struct OrderNode OrderNode;
typedef struct Submitter Submitter;
typedef struct Engine Engine;

/*
 *     WAITING <--> RUNNING --> DONE
 *        |            |
 *        +------------+------> FAILED
 *        +------------+------> CANCELLED
 *
 * RUNNING goes back to WAITING when its worker ended and it may run again. The
 * numbers are those of the protocol.
 */
typedef enum JobState {
        JOB_WAITING = GPUQ__V1__STATE__WAITING,
        JOB_RUNNING = GPUQ__V1__STATE__RUNNING,
        JOB_DONE = GPUQ__V1__STATE__DONE,
        JOB_FAILED = GPUQ__V1__STATE__FAILED,
        JOB_CANCELLED = GPUQ__V1__STATE__CANCELLED,
        _JOB_STATE_N,
} JobState;

/* Which list job->link is in; job_place_moves has the legal moves. */
typedef enum JobPlace {
        JOB_NOWHERE,  /* waits for other jobs */
        JOB_UNPLACED, /* engine->unplaced: there is no device yet */
        JOB_QUEUED,   /* its lane's queue, by job->entry */
        JOB_ALONE,    /* its slot's list of jobs to run alone */
        JOB_PARKED,   /* an instance's list, until the module is loaded there */
        JOB_INFLIGHT, /* its worker's list */
        JOB_ENDING,   /* engine->ending: ends as soon as the stack is shallow */
        JOB_ENDED,    /* its submitter has been told */
        _JOB_PLACE_N,
} JobPlace;

typedef enum JobDirection {
        JOB_IN = GPUQ__V1__DIRECTION__IN,
        JOB_OUT = GPUQ__V1__DIRECTION__OUT,
        JOB_INOUT = GPUQ__V1__DIRECTION__INOUT,
        JOB_OUT_WHOLE = GPUQ__V1__DIRECTION__OUT_WHOLE,
} JobDirection;

typedef struct JobBuffer {
        Arena *arena;
        uint64_t offset; /* bytes */
        uint64_t length; /* bytes */
        JobDirection direction;
} JobBuffer;

/** job_is_read() - whether a job finds in a buffer what was there before. */
static inline bool job_is_read(const JobBuffer *buffer) {
        return buffer->direction == JOB_IN || buffer->direction == JOB_INOUT;
}

typedef struct JobKernel {
        Module *module;
        const char *name;
        size_t n_name; /* in a job; job_new() counts */
} JobKernel;

#define JOB_WORD_BYTES 4u

/* One job runs before another. */
typedef struct JobEdge {
        Job *before; /* NULL once it ended */
        Job *after;
        LIST_ENTRY(JobEdge) link; /* before->successors */
        bool is_order;    /* derived from buffers: enough that it is in flight in the same worker */
        bool is_blocking; /* counted in after->n_blocking */
} JobEdge;

/* Somebody else who is told of the end; embedded in what the callee needs for that. */
typedef struct JobWatch {
        void (*ended)(struct JobWatch *watch, const Job *job); /* it watches no more */
        LIST_ENTRY(JobWatch) link;                             /* job->watches */
} JobWatch;

/* What a job's label and names come to. */
typedef struct JobTexts {
        size_t n_bytes; /* with their ends; 0: not told */
        uint64_t key;   /* of the names, see duration_key() */
} JobTexts;

typedef struct JobSpec {
        uint64_t id;
        int priority;
        uint64_t timeout_ms;
        const char *label;
        int device; /* -1: any */
        bool repeatable;
        bool timed;
        const JobBuffer *buffers;
        size_t n_buffers;
        const JobKernel *kernels;
        size_t n_kernels;
        JobTexts texts; /* told once for a prepared job */
        const uint8_t *operations;
        size_t n_operations;
        Arena *word; /* NULL: none */
        uint64_t word_offset;
        Job **after; /* unfinished ones */
        size_t n_after;
} JobSpec;

/* What it asks for; all of it in the job's own allocation, but for references. */
typedef struct JobWork {
        JobBuffer *buffers;
        JobKernel *kernels;
        uint8_t *operations;
        size_t n_buffers;
        size_t n_kernels;
        size_t n_operations;
        Arena *word; /* where its worker stores that it is done; NULL: nowhere */
        uint64_t word_offset;
        uint64_t timeout_ms; /* 0: none */
        int device;          /* named, or that of its buffers; -1: any */
        bool repeatable;
        bool timed;
} JobWork;

/* The jobs before and behind it. */
typedef struct JobEdges {
        JobEdge *after;  /* what its client put before it */
        JobEdge *order;  /* what its buffers put before it; an allocation of its own */
        OrderNode *node; /* in submitter->order, until it ends */
        size_t n_after;
        size_t n_order;
        size_t n_blocking; /* that keep it from running */
        LIST_HEAD(, JobEdge) successors;
} JobEdges;

/* Moments of its life; 0: not yet. */
typedef struct JobClock {
        uint64_t submitted_ns;
        uint64_t started_ns; /* handed to an executor, the last time */
        uint64_t ended_ns;
        uint64_t orphan_ns; /* when its session went while it ran */
} JobClock;

/* What it is expected to take of its device's time, where that is counted, and what it took. */
typedef struct JobCost {
        uint64_t class; /* of durations learnt together */
        uint64_t expected_ns;
        uint64_t counted_ns; /* in its device's gate; 0: not in it */
        uint64_t busy_ns;    /* once it is in flight no more */
        QuantaJob quantum;   /* of its domain's quanta */
        uint32_t n_beside;   /* the most that were in its worker at its start and its end */
        bool is_long;        /* expected to outlast the quantum */
        bool is_bounding;    /* counted in executor->short_ns */
} JobCost;

/* How it is to end as soon as it may. */
typedef struct JobVerdict {
        Failure *failure; /* NULL: there is no verdict */
        JobState state;
} JobVerdict;

/* What it came to. */
typedef struct JobOutcome {
        Failure *failure; /* of FAILED and CANCELLED */
        char *output;     /* what its kernels printed */
        uint64_t ran_us;
        uint64_t gpu_ns;
} JobOutcome;

struct Job {
        uint64_t id;
        Engine *engine;
        User *user;
        Submitter *submitter; /* NULL once it is gone */
        char *label;

        TAILQ_ENTRY(Job) link;           /* see place */
        TAILQ_ENTRY(Job) user_link;      /* user->jobs */
        TAILQ_ENTRY(Job) submitter_link; /* submitter->jobs */
        UT_hash_handle hh;               /* engine->jobs */
        QueueEntry entry;                /* its lane's queue */
        Delivery delivery;               /* in its worker's outbox, until it is sent */

        JobState state;
        JobPlace place;
        Device *device;     /* where it runs; NULL: not chosen */
        Executor *executor; /* while RUNNING */
        Instance *instance; /* while PARKED */
        size_t n_before;    /* QUEUED: jobs whose turn comes first, as last counted for a listing */

        JobWork work;
        JobEdges edges;
        JobClock clock;
        JobCost cost;
        JobVerdict verdict;
        JobOutcome outcome;
        LIST_HEAD(, JobWatch) watches;
        UserCharge charge;
        uint32_t record; /* in the ledger, or LEDGER_NONE */

        unsigned retries;
        FaultPhase phase; /* when its worker ends */
        bool is_held : 1; /* was in a worker of the supervisor before this one; its session has not said all */
        bool was_overtaken : 1; /* job_is_overtaken() when its worker ended */
        bool is_alone : 1;      /* after a fault: runs with nothing beside it */
        bool is_pooled : 1;     /* its memory */
};

/** job_texts() - of @spec's label and kernels. */
JobTexts job_texts(const JobSpec *spec);
/** job_new() - WAITING, with references to what it names. Return: 0, or -ENOMEM. */
int job_new(Engine *engine, const JobSpec *spec, User *user, Job **ret_job);
/** job_free() - of one that is in no list. NULL is fine. Return: NULL. */
Job *job_free(Job *job);
DEFINE_CLEANUP(Job, job_free)
/** job_find() - unfinished. Return: NULL: there is none of that id. */
Job *job_find(const Engine *engine, uint64_t id);
/** job_release() - let arenas and modules go: it ended. Twice is harmless. */
void job_release(Job *job);

/** job_watch() - @watch is told of the end; it stays the caller's. */
void job_watch(Job *job, JobWatch *watch);
/** job_unwatch() - no more. */
void job_unwatch(JobWatch *watch);
/** job_may_move() - is it a legal move? */
bool job_may_move(JobState from, JobState to);
/** job_set_state() - asserts the move and counts it for its user. */
void job_set_state(Job *job, JobState next);
/** job_place_moves - a bit for each place that a job may go to from this one. */
extern const uint16_t job_place_moves[_JOB_PLACE_N];
/** job_set_place() - asserts the move; the lists are the caller's. */
static inline void job_set_place(Job *job, JobPlace next) {
        assert(job_place_moves[job->place] & 1u << next);
        job->place = next;
}
/** job_is_made() - it is, or was, in the tables; else it failed its checks and only reports that. */
static inline bool job_is_made(const Job *job) {
        return job->hh.tbl != NULL;
}
/** job_set_output() - what its kernels printed, cut to @n_max bytes. */
void job_set_output(Job *job, const char *output, size_t n_max);
/** job_note_retries() - it waits again, after so many. */
void job_note_retries(Job *job, unsigned retries);
/** job_time_out() - a RUNNING job exceeded its timeout: it ends so when its worker has stopped. Return: false: it is to end otherwise already. */
bool job_time_out(Job *job);
/** job_lane() - of a job that has a device: its user there. */
static inline Lane *job_lane(const Job *job) {
        return job->user->lanes[job->device->index];
}
/** job_owner() - as the ledger names it. */
LedgerOwner job_owner(const Job *job);
/** job_is_ended() - DONE, FAILED or CANCELLED. */
bool job_is_ended(const Job *job);

/** job_changes_in_place() - one of its INOUT buffers is in such memory. */
bool job_changes_in_place(const Job *job, ArenaPlace place);
/** job_has_variables() - one of its modules has writable variables. */
bool job_has_variables(const Job *job);
/** job_is_overtaken() - one behind it, in flight as well, writes what it reads: it may find other input when it runs again. */
bool job_is_overtaken(const Job *job);
/** job_kernel_names() - "kernel add", "kernels add, scale" or "job 1.2"; at most n_text bytes. */
void job_kernel_names(const Job *job, char *text, size_t n_text);
/** job_waited_us() - from submit to start, or up to now. */
uint64_t job_waited_us(const Job *job, uint64_t now_ns);

/** JOB_ID_FORMAT - ids as people read them. */
#define JOB_ID_FORMAT    "%u.%u"
#define JOB_ID_PARTS(id) (unsigned)((id) >> 32), (unsigned)((id)&UINT32_MAX)

#endif
