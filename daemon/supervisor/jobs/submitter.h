/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUBMITTER_H
#define GPUQ_SUPERVISOR_SUBMITTER_H

/*
 * Submitter
 *
 * Who submits jobs, loads modules and asks for device memory: a client's session,
 * or the daemon itself for detached jobs. Embedded in its owner, which is told what
 * became of all that through a table of callbacks.
 */

#include <stdint.h>
#include <sys/queue.h>

#include "base.h"
#include "job.h"
#include "module.h"
#include "policy.h"

typedef struct Submitter Submitter;

/* May end other jobs, but must not close the submitter. */
typedef struct SubmitterOps {
        void (*job_ended)(Submitter *submitter, Job *job); /* the callee's, for job_free() */
        void (*module_ready)(Submitter *submitter, const Module *module,
                             const ModuleReport *report);
        void (*module_failed)(Submitter *submitter, const Module *module, const Failure *failure);
        void (*arena_ready)(Submitter *submitter, Arena *arena); /* NULL: it never asks for one */
        void (*arena_failed)(Submitter *submitter, const Arena *arena, const Failure *failure);
} SubmitterOps;

TAILQ_HEAD(SubmitterJobs, Job);

struct Submitter {
        uint32_t id; /* the upper half of its jobs' ids */
        Engine *engine;
        User *user;
        const SubmitterOps *ops;

        Order *order;
        struct SubmitterJobs jobs; /* unfinished */
        LIST_HEAD(, Module) modules;
        LIST_HEAD(, Arena) making; /* device arenas that a worker is to make */
};

/** submitter_init() - in zeroed memory. Return: 0, or -ENOMEM. */
int submitter_init(Submitter *submitter, Engine *engine, User *user, uint32_t id,
                   const SubmitterOps *ops);
/** submitter_close() - its jobs are cancelled and its modules unloaded, and it is told nothing. Twice is harmless. */
void submitter_close(Submitter *submitter);
/** submitter_fini() - of one that was closed, or whose init failed. */
void submitter_fini(Submitter *submitter);

/**
 * submitter_submit() - a job that was checked: it is in the tables, and queued when nothing has to run before it
 * @known: what the ledger says of it; its slot is LEDGER_NONE for a job that is new
 *
 * Return: NULL, or why not.
 */
Failure *submitter_submit(Submitter *submitter, const JobSpec *spec, const LedgerJob *known);
/** submitter_settle() - all was submitted again: jobs that were in workers of the supervisor before run again, or end. */
void submitter_settle(Submitter *submitter);
/** submitter_refuse() - job @id failed its checks: it ends so. Consumes @failure. Return: 0, or -ENOMEM: nobody is told. */
int submitter_refuse(Submitter *submitter, uint64_t id, Failure *failure);
/** submitter_recall() - a job that ended under a supervisor before this one is told again. Return: 0, or -ENOMEM. */
int submitter_recall(Submitter *submitter, const LedgerJob *known);

/** submitter_ask_arena() - it waits for this device arena to be made. */
void submitter_ask_arena(Submitter *submitter, Arena *arena);

#endif
