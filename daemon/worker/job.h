/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_JOB_H
#define GPUQ_WORKER_JOB_H

/*
 * Job
 *
 * One job in this worker, from its message to its end. It holds its arenas and
 * modules; the runner decides when it goes on.
 *
 *     WAITING -> IN_FLIGHT -> ENDED
 *          \-----------------/   when a check refuses it
 */

#include <sys/queue.h>

#include <uthash.h>

#include "proto/worker.pb-c.h"
#include "worker/arena.h"
#include "worker/graph.h"
#include "worker/module.h"
#include "worker/staging.h"

typedef enum JobState {
        JOB_WAITING,
        JOB_IN_FLIGHT,
        JOB_ENDED,
} JobState;

typedef struct JobBuffer {
        Arena *arena;
        uint64_t offset, length; /* bytes, inside the arena */
        StagingDirection direction;
} JobBuffer;

typedef struct JobKernel {
        Module *module;
        const char *name;
} JobKernel;

/* One block with what it points to, but for the program, staging and texts. */
typedef struct Job {
        uint64_t id;
        UT_hash_handle hh;     /* runner->by_id */
        TAILQ_ENTRY(Job) link; /* runner->waiting or ->in_flight */
        JobState state;

        int priority;
        bool timed;
        uint32_t timeout_ms; /* 0: none */
        JobBuffer *buffers;
        size_t n_buffers;
        JobKernel *kernels;
        size_t n_kernels;
        uint64_t *after; /* ids */
        size_t n_after;
        uint8_t *operations; /* packed */
        size_t n_operations; /* bytes */

        Program *program; /* once checked */
        Staging staging;
        void *staging_memory;
        bool writes_in_place; /* to host memory that it also reads */
        bool starved;         /* waits for device memory */

        Ticket ticket; /* in flight */
        CUdeviceptr scratch;
        Graph *graph;
        CUevent begin, end; /* if timed */
        uint64_t issued_ns, started_ns;
        bool late_told;

        Failure failure;
        char *output; /* what its kernels printed, or NULL */
        uint64_t gpu_ns, ran_us;
} Job;

TAILQ_HEAD(JobList, Job);

/* How a job finds what its message names. */
typedef struct JobTables {
        Arena *(*find_arena)(void *userdata, uint64_t id);
        Module *(*find_module)(void *userdata, uint64_t id);
        void *userdata;
} JobTables;

/**
 * job_new() - from its message, which is not needed afterwards
 *
 * A job that names what is not there, or a range outside an arena, is made all
 * the same, with its failure set. Return: 0 or -ENOMEM.
 */
int job_new(const Gpuq__Worker__WorkerJob *message, const JobTables *tables, Job **ret_job);
/** job_free() - its uses of arenas and modules have been let go by the runner; NULL is fine. Return: NULL. */
Job *job_free(Job *job);

/** job_is_prepared() - whether its arenas and modules have come to an end of their own, good or bad. */
bool job_is_prepared(const Job *job);
/**
 * job_check() - decode and check its operations; when prepared
 *
 * Return: 0, FAILURE_E_SET with its failure set, FAILURE_E_FAULT likewise, or -ENOMEM.
 */
int job_check(Job *job, const Context *context);
/** job_set_addresses() - of its buffers, when its scratch is known. */
void job_set_addresses(Job *job);
#endif
