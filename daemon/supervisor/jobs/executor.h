/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EXECUTOR_H
#define GPUQ_SUPERVISOR_EXECUTOR_H

/*
 * Executor
 *
 * What the scheduler knows of one worker: which jobs are in flight in it, and which
 * arenas and modules it was given (arena.h, module.h, inflight.h). The process and its
 * channel belong to workers/, which embeds an Executor in each worker and provides
 * ExecutorOps.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/gpuq.pb-c.h"
#include "base.h"
#include "policy.h"

typedef struct Arena Arena;
typedef struct Device Device;
typedef struct Engine Engine;
typedef struct Executor Executor;
typedef struct Instance Instance;
typedef struct Job Job;
typedef struct Mapping Mapping;
typedef struct Module Module;
typedef struct Slot Slot;
typedef struct Workers Workers;

TAILQ_HEAD(ExecutorJobs, Job);

struct Executor {
        uint32_t id; /* the worker's */
        Engine *engine;
        Slot *slot;     /* NULL: a probe's, or it is lost */
        Device *device; /* NULL: a probe's */
        bool is_ready;  /* it takes jobs */

        struct ExecutorJobs inflight; /* oldest first */
        uint32_t n_inflight;
        uint32_t n_long;
        uint64_t short_ns; /* expected, of those that are not long */
        uint64_t last_end_ns;
        uint64_t idle_ns; /* since when nothing is in flight */

        Mapping *mappings;   /* arenas that it was given */
        Instance *instances; /* modules that it was given */
        char *waiting;       /* what its worker waits to do until nothing runs; NULL: nothing */
};

/* What a job's end looked like to its worker, which is not to be trusted. */
typedef struct ExecutorResult {
        uint64_t ran_us;
        uint64_t gpu_ns;
        const char *output; /* what its kernels printed, or "" */
        Failure *failure;   /* NULL: it is done; consumed */
} ExecutorResult;

/* Provided by workers/. Messages go out at the end of the turn. */
typedef struct ExecutorOps {
        /** start() - a worker for this slot. Return: 0, or a negative errno. */
        int (*start)(Workers *workers, Slot *slot, Executor **ret_executor);
        /** probe() - a process that looks at @check, or for all devices if NULL; DeviceEvents tell what it found. Return: 0, or a negative errno. */
        int (*probe)(Workers *workers, Device *check);
        /** report() - all workers, for `gpuq status`. Return: 0, or -ENOMEM. */
        int (*report)(const Workers *workers, ProtobufCAllocator *allocator,
                      Gpuq__V1__Status *status);
        /** stop_soon() - a job in it is to end: stop it after a moment, unless that job ends by itself. */
        void (*stop_soon)(Executor *executor);
        /** push_job() - behind all that waits to be sent. */
        void (*push_job)(Executor *executor, Job *job);
        /** pull_job() - take it back. Return: false: it was sent. */
        bool (*pull_job)(Executor *executor, Job *job);
        /** push_arena() - it may use the arena, or is to make it. Return: 0, or -ENOMEM. */
        int (*push_arena)(Executor *executor, Arena *arena, bool make);
        /** push_module() - it is to load the module. Return: 0, or -ENOMEM. */
        int (*push_module)(Executor *executor, Module *module);
        void (*drop_arena)(Executor *executor, uint64_t id);
        void (*drop_module)(Executor *executor, uint64_t id);
} ExecutorOps;

/** executor_init() - in zeroed memory; @slot and @device NULL: of a probe. */
void executor_init(Executor *executor, Engine *engine, uint32_t id, Slot *slot, Device *device);

#endif
