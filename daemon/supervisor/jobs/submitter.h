/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUBMITTER_H
#define GPUQ_SUPERVISOR_SUBMITTER_H

/*
 * Submitter
 *
 * Submits jobs, loads modules and asks for device memory: a client's session, or the daemon itself
 * for detached jobs. Embedded in its owner, which gets the results through a table of callbacks.
 * submission.h has the operations.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base.h"
#include "policy.h"

typedef struct Arena Arena;
typedef struct Engine Engine;
typedef struct Job Job;
typedef struct Lane Lane;
typedef struct Module Module;
typedef struct Submitter Submitter;
typedef struct User User;

/* The callee may end other jobs, but must not close the submitter. */
typedef struct SubmitterOps {
        void (*job_ended)(Submitter *submitter,
                          Job *job); /* the callee takes the job, for job_free() */
        void (*module_ready)(Submitter *submitter, const Module *module,
                             Gpuq__V1__ModuleReady *report);
        void (*module_failed)(Submitter *submitter, const Module *module, const Failure *failure);
        void (*arena_ready)(Submitter *submitter,
                            Arena *arena); /* NULL: this submitter never asks for arenas */
        void (*arena_failed)(Submitter *submitter, const Arena *arena, const Failure *failure);
        void (*closed)(Submitter *submitter); /* see submission_close(); it may be finished now */
} SubmitterOps;

TAILQ_HEAD(SubmitterJobs, Job);

struct Submitter {
        uint32_t id; /* the upper half of its jobs' ids */
        Engine *engine;
        User *user;
        const char *program; /* the client's, the owner's text; NULL: it is no client */
        int32_t pid;         /* the client's */
        uint32_t slurm_job;  /* the client's job of Slurm; 0: none */
        const SubmitterOps *ops;
        bool waits_for_device; /* else its work fails while no device is usable */
        Lane *home;      /* its user's on the device for its device memory; NULL: not chosen */
        bool is_settled; /* some of that memory is there */

        Order *order;
        struct SubmitterJobs jobs; /* unfinished */
        struct SubmitterJobs gaps; /* ended before jobs that they had to follow */
        LIST_HEAD(, Module) modules;
        LIST_HEAD(, Arena) making;   /* device arenas that a worker must create */
        TAILQ_ENTRY(Submitter) link; /* backlog.closing of its person */
        bool is_closing;             /* it is gone, and some of its jobs are not cancelled yet */
};

/** submitter_is_there() - it is told what becomes of its jobs; NULL is fine. */
static inline bool submitter_is_there(const Submitter *submitter) {
        return submitter && !submitter->is_closing;
}

/** submitter_init() - in zeroed memory. Return: 0, or -ENOMEM. */
int submitter_init(Submitter *submitter, Engine *engine, User *user, uint32_t id,
                   const SubmitterOps *ops);
/** submitter_move() - @home is its home from now on; NULL: it has none. */
void submitter_move(Submitter *submitter, Lane *home);
/** submitter_fini() - the submitter must be closed, or its init have failed. */
void submitter_fini(Submitter *submitter);

#endif
