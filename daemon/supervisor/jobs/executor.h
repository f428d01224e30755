/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_EXECUTOR_H
#define GPUQ_SUPERVISOR_EXECUTOR_H

/*
 * Executor
 *
 * What the scheduler knows of one worker: which jobs are in flight in it, and which
 * arenas and modules it was given. The process and its channel belong to workers/,
 * which embeds an Executor in each worker and provides ExecutorOps.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base.h"
#include "job.h"
#include "module.h"
#include "policy.h"
#include "util/table.h"

typedef struct Executor Executor;
typedef struct Mapping Mapping;
typedef struct Slot Slot;
typedef struct Workers Workers;

/* An arena that an executor was given. */
struct Mapping {
        uint64_t id; /* of the arena */
        Arena *arena;
        Executor *executor;
        LIST_ENTRY(Mapping) link; /* arena->mappings */
        UT_hash_handle hh;        /* executor->mappings */
};

typedef enum InstanceState {
        INSTANCE_ADDING,
        INSTANCE_READY,
        INSTANCE_FAILED, /* told, about to be forgotten */
} InstanceState;

TAILQ_HEAD(InstanceJobs, Job);

/* A module that an executor was given. */
struct Instance {
        uint64_t id; /* of the module */
        Module *module;
        Executor *executor;
        InstanceState state;
        bool is_used;               /* a job may have changed its variables */
        struct InstanceJobs parked; /* wait until it is READY */
        LIST_ENTRY(Instance) link;  /* module->instances */
        UT_hash_handle hh;          /* executor->instances */
};

#define EXECUTOR_ORPHAN_MS                                                                         \
        2000u /* so long the running job of a client that died may take to end by itself */

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

        Mapping *mappings;
        Instance *instances;
        char *waiting; /* what its worker waits to do until nothing runs; NULL: nothing */
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
        /** probe() - a process that looks at @look, or for all devices if NULL; DeviceEvents tell what it found. Return: 0, or a negative errno. */
        int (*probe)(Workers *workers, Device *look);
        /** report() - all workers, for `gpuq status`. Return: 0, or -ENOMEM. */
        int (*report)(const Workers *workers, ProtobufCAllocator *allocator,
                      Gpuq__V1__Status *status);
        /** stop_soon() - a job in it is doomed: stop it after a moment, unless that job ends. */
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

/** executor_init() - in zeroed memory; @slot NULL: of a probe. */
void executor_init(Executor *executor, Engine *engine, uint32_t id, Slot *slot);

/** executor_run() - a job goes in flight: arenas it lacks go first. Return: 0, or -ENOMEM. */
int executor_run(Executor *executor, Job *job);
/** executor_enter() - a job is in it from now on. */
void executor_enter(Executor *executor, Job *job);
/** executor_unbound() - the job is overdue: what it was expected to take bounds what is in flight no more. */
void executor_unbound(Executor *executor, Job *job);
/** executor_remove() - a job is in flight no more. */
void executor_remove(Executor *executor, Job *job);
/** executor_recall() - jobs that were not sent yet go back untouched. */
void executor_recall(Executor *executor);
/** executor_find_job() - that was sent to it. Return: NULL: there is none. */
Job *executor_find_job(const Executor *executor, uint64_t id);
/** executor_set_phase() - how far it says the job had come when it stopped. */
void executor_set_phase(Executor *executor, Job *job, FaultPhase phase);
/** executor_ended() - the job that it was sent has ended. */
void executor_ended(Executor *executor, Job *job, const ExecutorResult *result);

/** executor_make_arena() - unless it was asked already. Return: 0, or -ENOMEM. */
int executor_make_arena(Executor *executor, Arena *arena);
/** executor_made_arena() - it did, @fd is consumed. Return: 0, or -ENOMEM: it does not know that it may use it. */
int executor_made_arena(Executor *executor, Arena *arena, int fd);
/** mapping_drop() - nobody uses the arena any more. */
void mapping_drop(Mapping *mapping);
/** mapping_forget() - the executor could not use it, or is gone. */
void mapping_forget(Mapping *mapping);

/** executor_find_instance() - of a module. Return: NULL: it has none. */
Instance *executor_find_instance(const Executor *executor, const Module *module);
/** executor_add_instance() - have it load the module: ADDING. Return: NULL: no memory. */
Instance *executor_add_instance(Executor *executor, Module *module);
/** instance_loaded() - jobs that waited for it go on; the module is told. */
void instance_loaded(Instance *instance, const ModuleReport *report);
/** instance_failed() - jobs that waited for it end; the module is told. Consumes @failure. */
void instance_failed(Instance *instance, Failure *failure);
/** instance_drop() - nobody uses the module any more. */
void instance_drop(Instance *instance);

/** executor_drop_orphans() - cancel the jobs whose submitter has been gone for EXECUTOR_ORPHAN_MS. */
void executor_drop_orphans(Executor *executor, uint64_t now_ns);
/** executor_has_begun() - by executor_set_phase(), one of its jobs may have run. */
bool executor_has_begun(const Executor *executor);
/** executor_has_doomed() - a job that is not behind others waits for the worker to stop. */
bool executor_has_doomed(const Executor *executor);
/** executor_is_spare() - it is idle, and nothing is lost with it. */
bool executor_is_spare(const Executor *executor);
/** executor_forget() - it is lost, its jobs were judged: forget what it was given. @blames_modules: those that it was loading may be to blame. */
void executor_forget(Executor *executor, bool blames_modules);

#endif
