/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_JOB_H
#define GPUQ_WORKER_JOB_H

/*
 * Job
 *
 * One job in this worker, from its message to its end. It holds its arenas and modules. The runner
 * decides when it proceeds.
 *
 *     WAITING -> IN_FLIGHT -> ENDED
 *          \-----------------/   when a check refuses it
 */

#include <sys/queue.h>

#include "util/table.h"
#include "worker/arena.h"
#include "worker/blocks.h"
#include "worker/module.h"
#include "worker/programs.h"
#include "worker/protocol.h"
#include "worker/staging.h"
#include "worker/word.h"

/* Of host memory in a job whose data kernels move, or that is worked on in place; more is for the copy engines. */
#define JOB_SMALL_BYTES (256u << 10)

typedef enum JobState {
        JOB_WAITING,
        JOB_IN_FLIGHT,
        JOB_ENDED,
} JobState;

typedef struct JobKernel {
        Module *module;
        const char *name;
} JobKernel;

typedef struct Direct Direct;
typedef struct DirectTemplate DirectTemplate;
typedef struct Job Job;
typedef struct CheckedTable CheckedTable;

/* An edge from an earlier job. */
typedef struct JobEdge {
        SLIST_ENTRY(JobEdge) link; /* before->successors */
        Job *after;                /* the later job */
} JobEdge;

/* Its predecessors and successors. */
typedef struct JobOrder {
        uint64_t *after; /* ids */
        JobEdge *edges;  /* one each */
        size_t n_after;
        size_t n_behind; /* predecessors that it still waits for */
        SLIST_HEAD(, JobEdge) successors;
} JobOrder;

/* The properties that jobs of one launch share. */
typedef struct JobKind {
        Function *function; /* NULL: it runs as its own batch */
        unsigned grid[3], block[3];
        unsigned shared_bytes;
        StreamClass class;
} JobKind;

/* Where and how long it ran. */
typedef struct JobRun {
        uint64_t gpu_ns, ran_us;
        uint32_t stream; /* index + 1; 0: nothing of it was issued */
} JobRun;

/* Where it was fired in a direct ring (direct.h). */
typedef struct JobFired {
        Direct *direct; /* NULL: it was not, or is an ordinary job since */
        DirectTemplate *template;
        uint32_t entry;
        uint64_t taken_ns;
} JobFired;

/* Of a checked job (checked.h). */
typedef struct JobChecked {
        CheckedTable *table; /* once it was issued */
        uint64_t n_shadow;   /* bytes of its shadows (shadow.h) */
} JobChecked;

/* One allocation with all it points to, except the program and texts. */
struct Job {
        uint64_t id;
        UT_hash_handle hh;      /* runner->by_id */
        TAILQ_ENTRY(Job) link;  /* runner->waiting, ->in_flight or ->ended */
        TAILQ_ENTRY(Job) queue; /* runner->ready, then batch->jobs */
        JobState state;

        int priority;
        bool timed;
        bool alone;             /* is not batched with other jobs */
        uint32_t timeout_ms;    /* 0: none */
        StagingBuffer *buffers; /* of an Arena each */
        size_t n_buffers;
        JobKernel *kernels;
        size_t n_kernels;
        JobOrder order;
        uint64_t formed_ns;  /* when it first came to a batch; 0: not yet */
        uint8_t *operations; /* packed */
        size_t n_operations; /* bytes */
        JobFired fired;
        Word word; /* released by word_end() */

        /* once checked */
        Program *program;
        Staging staging;
        void *staging_memory;
        JobKind kind;
        size_t n_rows; /* jobs of its kind in one launch */
        uint64_t
                n_small; /* bytes to move or to clear before it; at most JOB_SMALL_BYTES, or UINT64_MAX: many */
        bool may_be_in_place; /* its kernel could work on host memory itself */

        JobChecked checked;
        uint32_t fence_word; /* of a fenced job in flight (fence.h): index + 1; 0: none */
        struct Batch *batch; /* in flight */
        CUdeviceptr scratch; /* where its staged slices are */
        bool late_told;
        bool never_ran; /* it has ended, and nothing of it was issued */

        Failure failure;
        char *output; /* what its kernels printed, or NULL */
        JobRun run;
};

TAILQ_HEAD(JobList, Job);

/* Callbacks that find what its message names. */
typedef struct JobTables {
        Arena *(*find_arena)(void *userdata, uint64_t id);
        Module *(*find_module)(void *userdata, uint64_t id);
        void *userdata;
} JobTables;

/**
 * job_new() - make a job from its message, which is not needed afterwards
 * @parts: as protocol_job() found them
 * @blocks: its memory, which job_free() gives back
 *
 * A job that names a missing object, or a range outside an arena, is made with its failure set.
 * Return: 0, or -ENOMEM.
 */
int job_new(const WorkerJob *message, const WorkerJobParts *parts, const JobTables *tables,
            Blocks *blocks, Job **ret_job);
/** job_let_go() - it does not use its arenas and modules any more; call it once. */
void job_let_go(Job *job);
/** job_free() - after job_let_go(); NULL is fine. Return: NULL. */
Job *job_free(Job *job, Blocks *blocks);

/** job_is_prepared() - whether its arenas and modules are ready or have failed. */
bool job_is_prepared(const Job *job);
/**
 * job_check() - decode and check its operations; when prepared
 *
 * Return: 0, FAILURE_E_SET with its failure set, FAILURE_E_FAULT likewise, FAILURE_E_WAIT, or -ENOMEM.
 */
int job_check(Job *job, Programs *programs);
/** job_set_addresses() - set its buffers' addresses: host arenas if @in_place, else its scratch. */
void job_set_addresses(const Job *job, bool in_place);

/** job_is_plain() - it succeeded and printed nothing, like nearly all jobs. */
static inline bool job_is_plain(const Job *job) {
        return !failure_is_set(&job->failure) && !job->output;
}

/** job_scratch_bytes() - device memory that it needs while it runs: staged slices, the workspace of libraries, shadows. */
static inline uint64_t job_scratch_bytes(const Job *job) {
        return job->staging.n_bytes + job->program->n_workspace + job->checked.n_shadow;
}

/** job_arena() - the arena of a buffer, or of a range of its staging. */
static inline Arena *job_arena(const void *arena) {
        return (Arena *)arena;
}
#endif
