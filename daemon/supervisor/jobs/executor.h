/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EXECUTOR_H
#define GPUQ_SUPERVISOR_EXECUTOR_H

/*
 * Executor
 *
 * What the scheduler knows of one worker: the jobs in flight in it, and the arenas and modules that
 * it may use (arena.h, module.h, inflight.h). workers/ owns the process and its channel, embeds an
 * Executor in each worker and provides ExecutorOps.
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
typedef struct Lease Lease;
typedef struct Mapping Mapping;
typedef struct Module Module;
typedef struct Slot Slot;
typedef struct Workers Workers;

TAILQ_HEAD(ExecutorJobs, Job);

/* Why the worker holds jobs back, as it says. */
typedef enum ExecutorWait {
        EXECUTOR_WAITS_NOT,
        EXECUTOR_WAITS_FOR_QUIET,   /* a module is loaded, for example, when no kernel runs */
        EXECUTOR_WAITS_FOR_BUILTIN, /* no job runs before gpuq's own kernels are loaded */
        EXECUTOR_WAITS_FOR_ONE,     /* a job runs alone, or is to */
} ExecutorWait;

struct Executor {
        uint32_t id; /* the worker's */
        int32_t pid; /* of its process; 0: not started yet */
        Engine *engine;
        Slot *slot;       /* NULL: a probe, or the worker is lost */
        Device *device;   /* NULL: a probe */
        bool is_ready;    /* it takes jobs */
        bool is_express;  /* its slot's second one (express.h) */
        bool is_outdated; /* its user has another share of the SMs now: it ends when it is idle */

        struct ExecutorJobs inflight; /* oldest first */
        uint32_t n_inflight;
        uint32_t n_long;
        uint64_t long_ns;  /* expected time of the long job that entered last */
        uint64_t short_ns; /* expected time of its jobs that are not long */
        uint64_t last_end_ns;
        uint64_t charged_ns; /* paid until then for jobs in flight, see gate.c */
        uint64_t idle_ns;    /* since when no job is in flight */

        TAILQ_HEAD(, Lease) leases; /* rings that it reads (lease.h) */

        Mapping *mappings;   /* arenas that it may use */
        Instance *instances; /* modules that it was given */
        unsigned n_parked;   /* jobs that wait for one of these */
        unsigned n_crowded;  /* instances for which INSTANCE_PARKED_MAX jobs wait */
        ExecutorWait wait;
};

/* A job's end as the worker reports it; the worker is not trusted. */
typedef struct ExecutorResult {
        uint64_t ran_us;
        uint64_t gpu_ns;
        uint16_t stream;    /* index + 1; 0: none */
        const char *output; /* what its kernels printed, or "" */
        Failure *failure;   /* NULL: the job is done; consumed */
        bool never_ran;     /* failed before anything of it was started */
} ExecutorResult;

/* Provided by workers/. Messages are sent at the end of the turn. */
typedef struct ExecutorOps {
        /** start() - start a worker for this slot. Return: 0, or a negative errno. */
        int (*start)(Workers *workers, Slot *slot, bool is_express, Executor **ret_executor);
        /**
         * probe() - start a process that checks @check, or lists all devices if NULL;
         *
         * DeviceOps get the result.
         *
         * Return: 0, or a negative errno.
         */
        int (*probe)(Workers *workers, Device *check);
        /** make_room() - the device has no memory for the slot's worker, as a check found: stop another domain's. */
        void (*make_room)(Slot *slot);
        /** report() - all workers, and what they measured of @status's devices. Return: 0, or -ENOMEM. */
        int (*report)(const Workers *workers, ProtobufCAllocator *allocator,
                      Gpuq__V1__Status *status);
        /** stop_soon() - a job in it must end: stop the worker after a moment, unless that job ends by itself. */
        void (*stop_soon)(Executor *executor);
        /** push_job() - append the job to the outbox. */
        void (*push_job)(Executor *executor, Job *job);
        /** pull_job() - take the job out of the outbox. Return: false: it was sent. */
        bool (*pull_job)(Executor *executor, Job *job);
        /** push_arena() - let it use the arena, or have it create the arena. Return: 0, or -ENOMEM. */
        int (*push_arena)(Executor *executor, Arena *arena, bool make);
        /** push_module() - have it load the module. Return: 0, or -ENOMEM. */
        int (*push_module)(Executor *executor, Module *module);
        void (*drop_arena)(Executor *executor, uint64_t id);
        /** drop_module() - have it unload the module. @is_loading: it has not said yet that the module is loaded. */
        void (*drop_module)(Executor *executor, uint64_t id, bool is_loading);
        /** lend() - have it read the lease's ring, which stays its owner's. Return: 0, or -ENOMEM. */
        int (*lend)(Executor *executor, Lease *lease);
        /** recall() - have it give the lease back: lease_returned(), or leases_lost(). */
        void (*recall)(Executor *executor, const Lease *lease);
} ExecutorOps;

/** executor_init() - in zeroed memory; @slot and @device are NULL for a probe. */
void executor_init(Executor *executor, Engine *engine, uint32_t id, Slot *slot, Device *device);

#endif
