/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_JOB_H
#define GPUQ_SUPERVISOR_JOB_H

/*
 * Job
 *
 * A client's job, from submission to its one end. It holds its arenas and modules, and its edges to
 * earlier and later jobs. The scheduler decides when it runs; ending.h describes its end.
 *
 * A job that ends before jobs that it had to follow by its buffers, because it was cancelled or failed,
 * leaves a gap: later jobs still follow it, and through it the earlier ones. It stays charged and in
 * memory until those have ended, so each edge between two jobs is made and removed once.
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
 * RUNNING goes back to WAITING when its worker ended and the job may run again. The
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

/* The list that job->link is in; job_place_moves has the legal moves. */
typedef enum JobPlace {
        JOB_NOWHERE,  /* waits for other jobs */
        JOB_UNPLACED, /* engine->unplaced.jobs: no device is known yet */
        JOB_QUEUED,   /* its lane's queue, by job->entry */
        JOB_ALONE,    /* its slot's list of jobs to run alone */
        JOB_PARKED,   /* an instance's list, until the module is loaded there */
        JOB_INFLIGHT, /* its worker's list */
        JOB_ENDING,   /* backlog.ending of its person: ends as soon as the call stack is shallow */
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

/** job_is_read() - whether a job reads a buffer's previous contents. */
static inline bool job_is_read(const JobBuffer *buffer) {
        return buffer->direction == JOB_IN || buffer->direction == JOB_INOUT;
}

typedef struct JobKernel {
        Module *module;
        const char *name;
        size_t n_name; /* in a job; job_new() counts */
} JobKernel;

#define JOB_WORD_BYTES   4u
#define JOB_BUFFERS_STEP 64u /* buffers that cost one step more to let go */
#define JOB_AFTER_STEP   16u /* dependencies that cost one step more to drop */

/* One job runs before another. */
typedef struct JobEdge {
        Job *before; /* NULL once that job ended */
        Job *after;
        TAILQ_ENTRY(JobEdge) link; /* one of the three lists in before->edges */
        bool is_order; /* derived from buffers: the earlier job need only be in flight in the same worker */
        bool is_blocking; /* counted in after->n_blocking */
        bool is_seen;     /* in before->edges.followers */
} JobEdge;

TAILQ_HEAD(JobEdgeList, JobEdge);

/* Another observer of the end; embedded in the observer's own object. */
typedef struct JobWatch {
        void (*ended)(struct JobWatch *watch,
                      const Job *job); /* the watch is removed before the call */
        LIST_ENTRY(JobWatch) link;     /* job->watches */
} JobWatch;

/* Facts about a job's label and kernel names. */
typedef struct JobTexts {
        size_t n_bytes; /* with terminators; 0: not computed */
        uint64_t key;   /* of the names, see duration_key() */
} JobTexts;

typedef struct JobSpec {
        uint64_t id;
        int priority;
        uint64_t timeout_ms;
        const char *label;
        int device;    /* -1: any */
        bool may_move; /* `device` is that of its buffers, and not requested */
        bool repeatable;
        bool timed;
        bool by_address;
        const JobBuffer *buffers;
        size_t n_buffers;
        uint64_t n_moved; /* bytes that are copied for those in host memory */
        const JobKernel *kernels;
        size_t n_kernels;
        JobTexts texts; /* computed once for a prepared job */
        const uint8_t *operations;
        size_t n_operations;
        Arena *word; /* NULL: none */
        uint64_t word_offset;
        Job **after; /* unfinished jobs */
        size_t n_after;
        uint32_t slurm_job; /* 0: the submitter's */
} JobSpec;

/* The request. Everything but references is in the job's own allocation. */
typedef struct JobWork {
        JobBuffer *buffers;
        JobKernel *kernels;
        uint8_t *operations;
        size_t n_buffers;
        size_t n_kernels;
        size_t n_operations;
        Arena *word; /* where the worker stores the completion; NULL: nowhere */
        uint64_t word_offset;
        uint64_t n_data;     /* bytes of its buffers */
        uint64_t n_moved;    /* bytes that are copied for those in host memory */
        uint64_t timeout_ms; /* 0: none */
        uint32_t n_bytes;    /* of its allocation, with all of this */
        int device;          /* requested, or that of its buffers; -1: any */
        bool may_move;       /* that of its buffers: it was not requested */
        bool repeatable;
        bool timed;
        bool by_address;    /* its kernels reach buffers by addresses in memory */
        bool is_prepared;   /* fired from a prepared job */
        uint32_t slurm_job; /* of the client that submitted it; 0: none */
} JobWork;

/* Its predecessors and successors. */
typedef struct JobEdges {
        JobEdge *after;  /* predecessors that the client named */
        JobEdge *order;  /* predecessors by buffers; an allocation of its own */
        OrderNode *node; /* in submitter->order, until it ends and is no gap */
        size_t n_after;
        size_t n_order;
        size_t n_behind;               /* of order: those that have not ended */
        size_t n_blocking;             /* edges that keep it from running */
        struct JobEdgeList dependents; /* later jobs whose clients named it */
        struct JobEdgeList successors; /* later jobs by buffers, not looked at since it started */
        struct JobEdgeList followers;  /* later jobs by buffers that were */
        TAILQ_ENTRY(Job) link;         /* backlog.following of its person */
        bool is_following;             /* in that list */
} JobEdges;

/* Timestamps; 0: not yet. */
typedef struct JobClock {
        uint64_t submitted_ns;
        uint64_t started_ns; /* the latest hand-over to an executor */
        uint64_t ended_ns;
        uint64_t behind_ns; /* from its submission until the jobs that it must follow had ended */
        uint64_t parked_ns; /* in all; while it is PARKED, less the time when that began */
        uint64_t orphan_ns; /* when its session ended while the job ran */
} JobClock;

/* Expected and actual device time, and where the time is counted. */
typedef struct JobCost {
        uint64_t class; /* jobs of one class share learnt durations */
        uint64_t expected_ns;
        uint64_t owed_ns;    /* of the expected time, not paid yet, see gate.c */
        uint64_t counted_ns; /* in its device's gate; 0: not in the gate */
        uint64_t busy_ns;    /* of its last try; set when it leaves the executor */
        uint64_t spent_ns;   /* of the tries before */
        QuantaJob quantum;   /* of its domain's quanta */
        uint32_t n_beside;   /* most jobs in its worker at its start or end */
        uint16_t stream;     /* of its worker, where it ran: index + 1; 0: not known */
        bool is_long;        /* expected to outlast the quantum */
        bool is_unknown;     /* no job of its class has ended yet */
        bool is_away;        /* not on the device of its data, see away.h */
        bool is_bounding;    /* counted in executor->short_ns */
} JobCost;

/* The decided end, which takes effect as soon as possible. */
typedef struct JobVerdict {
        Failure *failure; /* NULL: no end is decided */
        JobState state;
} JobVerdict;

/* The result. */
typedef struct JobOutcome {
        Failure *failure; /* when FAILED or CANCELLED */
        char *output;     /* what its kernels printed */
        UserCharge texts; /* for both */
        uint64_t ran_us;
        uint64_t gpu_ns;
} JobOutcome;

/* As last counted for a listing. */
typedef struct JobPosition {
        uint32_t n_before; /* jobs before it */
        uint32_t n_counts; /* of its user, when that was */
} JobPosition;

struct Job {
        uint64_t id;
        Engine *engine;
        User *user;
        Submitter *submitter; /* NULL once the submitter is gone */
        char *label;

        TAILQ_ENTRY(Job) link;           /* the list that `place` names */
        TAILQ_ENTRY(Job) user_link;      /* user->jobs */
        TAILQ_ENTRY(Job) submitter_link; /* submitter->jobs or submitter->gaps */
        UT_hash_handle hh;               /* engine->jobs */
        QueueEntry entry;                /* its lane's queue */
        Delivery delivery;               /* in its worker's outbox, until it is sent */

        JobState state;
        JobPlace place;
        Device *device;       /* NULL: not chosen */
        Executor *executor;   /* while RUNNING */
        Instance *instance;   /* while PARKED */
        JobPosition position; /* while QUEUED */

        JobWork work;
        JobEdges edges;
        JobClock clock;
        JobCost cost;
        JobVerdict verdict;
        JobOutcome outcome;
        LIST_HEAD(, JobWatch) watches;
        UserCharge charge;
        UserCharge memory;
        uint32_t record; /* in the ledger, or LEDGER_NONE */

        unsigned retries;
        FaultPhase phase; /* set when its worker ends */
        bool is_held : 1; /* was in a worker of the previous supervisor; its session is still resubmitting */
        bool was_overtaken : 1; /* see overtaken.h; set at its worker's end */
        bool is_alone : 1;      /* runs alone after a fault */
        bool is_pooled : 1;     /* its memory comes from a pool */
        bool is_gap : 1;  /* ended, and later jobs follow it until its predecessors have ended */
        bool is_left : 1; /* a job that job_free() was called for while later jobs still follow it */
};

/** job_texts() - for @spec's label and kernels. */
JobTexts job_texts(const JobSpec *spec);
/** job_new() - a WAITING job, with references to what it names. Return: 0, or -ENOMEM. */
int job_new(Engine *engine, const JobSpec *spec, User *user, Job **ret_job);
/** job_free() - the job must be in no list; freed once no job follows it. NULL is fine. Return: NULL. */
Job *job_free(Job *job);
DEFINE_CLEANUP(Job, job_free)
/** job_steps() - steps that it takes to end it or let it go; see Engine.n_steps. */
static inline size_t job_steps(const Job *job) {
        return 1 + job->work.n_buffers / JOB_BUFFERS_STEP + job->edges.n_after / JOB_AFTER_STEP;
}
/** job_memory() - bytes that it takes until it ends, with its place in the order. */
uint64_t job_memory(const Job *job);
/** job_find() - an unfinished job. Return: NULL: none has this id. */
Job *job_find(const Engine *engine, uint64_t id);
/** job_release() - release arenas and modules after the end. Repeating it is harmless. */
void job_release(Job *job);
/** job_forget_after() - before it ends without having run: it depends on no job any more. */
void job_forget_after(Job *job);

/** job_watch() - call @watch at the end; it stays the caller's. */
void job_watch(Job *job, JobWatch *watch);
/** job_unwatch() - remove the watch. */
void job_unwatch(JobWatch *watch);
/** job_may_move() - whether the move is legal. */
bool job_may_move(JobState from, JobState to);
/** job_set_state() - assert that the move is legal and update the user's counts. */
void job_set_state(Job *job, JobState next);
/** job_place_moves - for each place a bit mask of the places that may follow it. */
extern const uint16_t job_place_moves[_JOB_PLACE_N];
/** job_set_place() - assert that the move is legal; the caller changes the lists. */
static inline void job_set_place(Job *job, JobPlace next) {
        assert(job_place_moves[job->place] & 1u << next);
        job->place = next;
}
/** job_is_made() - it is, or was, in the tables. Else it failed its checks and exists only to report that. */
static inline bool job_is_made(const Job *job) {
        return job->hh.tbl != NULL;
}
/** job_set_output() - what its kernels printed, at most @n_max bytes. */
void job_set_output(Job *job, const char *output, size_t n_max);
/** job_note_retries() - the job waits again, after @retries. */
void job_note_retries(Job *job, unsigned retries);
/**
 * job_time_out() - a RUNNING job exceeded its timeout and fails when its worker has stopped
 *
 * Return: false: another end is already decided.
 */
bool job_time_out(Job *job);
/** job_lane() - its user's lane on its device; the job must have a device. */
static inline Lane *job_lane(const Job *job) {
        return job->user->lanes[job->device->index];
}
/** job_owner() - the owner as the ledger stores it. */
LedgerOwner job_owner(const Job *job);
/** job_edge_add() - put an edge into the list of its earlier job where it belongs. */
void job_edge_add(JobEdge *edge);
/** job_edge_remove() - take it out. */
void job_edge_remove(JobEdge *edge);
/** job_has_followers() - later jobs have edges to it. */
static inline bool job_has_followers(const Job *job) {
        return !TAILQ_EMPTY(&job->edges.dependents) || !TAILQ_EMPTY(&job->edges.successors) ||
               !TAILQ_EMPTY(&job->edges.followers);
}
/** job_is_ended() - DONE, FAILED or CANCELLED. */
bool job_is_ended(const Job *job);
/** job_end_is_decided() - it has ended, or will with a failure that is known. */
static inline bool job_end_is_decided(const Job *job) {
        return job->verdict.failure || job_is_ended(job);
}

/** job_away_class() - jobs of this class away from their data share learnt durations. */
static inline uint64_t job_away_class(uint64_t class) {
        return duration_key(class, "away", sizeof("away"));
}
/** job_changes_in_place() - one of its INOUT buffers is in memory of this place. */
bool job_changes_in_place(const Job *job, ArenaPlace place);
/** job_has_variables() - one of its modules has writable variables. */
bool job_has_variables(const Job *job);
/** job_kernel_names() - "kernel add", "kernels add, scale" or "job 1.2"; at most n_text bytes. */
void job_kernel_names(const Job *job, char *text, size_t n_text);
/** job_note_times() - where its time went; for each job that ends, so written where it is kept. */
static inline void job_note_times(const Job *job, uint64_t now_ns, HistoryTimes *to) {
        to->class = (uint32_t)job->cost.class;
        to->n_beside = job->cost.n_beside;
        to->behind_ns =
                job->edges.n_blocking ? now_ns - job->clock.submitted_ns : job->clock.behind_ns;
        to->parked_ns = job->clock.parked_ns;
        to->worker_ns = job->clock.started_ns ? now_ns - job->clock.started_ns : 0;
        to->gpu_ns = job->outcome.gpu_ns;
        to->n_moved = job->work.n_moved;
        to->is_prepared = job->work.is_prepared;
        to->is_pinned = job->work.device >= 0;
}
/** job_waited_us() - from submission to start, or up to now. */
uint64_t job_waited_us(const Job *job, uint64_t now_ns);

/** JOB_ID_FORMAT - how ids are printed. */
#define JOB_ID_FORMAT    "%u.%u"
#define JOB_ID_PARTS(id) (unsigned)((id) >> 32), (unsigned)((id)&UINT32_MAX)

#endif
