/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_RUNNER_H
#define GPUQ_WORKER_RUNNER_H

/*
 * Runner
 *
 * The jobs of this worker: which may be issued now and together, which are in flight, and which have
 * ended. Completions are polled. The driver is queried for faults with backoff, because nothing else
 * shows a fault. The runner never blocks.
 *
 * A job is ready when none of its predecessors waits. It follows predecessors in flight on their
 * stream.
 */

#include "worker/arenas.h"
#include "worker/issue.h"
#include "worker/output.h"
#include "worker/quiet.h"

typedef struct RunnerSettings {
        IssueSettings issue;
        uint64_t coalesce_ns; /* how long a job may wait for others of its kind */
} RunnerSettings;

typedef struct Runner {
        Context *context;
        Streams *streams;
        Quiesce *quiesce;
        Output *output;
        RunnerSettings settings;
        Issuer issuer;
        JobTables tables;
        Programs programs;
        Blocks blocks;

        Job *by_id; /* waiting and in flight */
        struct JobList waiting, in_flight, ended;
        struct JobList ready;    /* waiting jobs that are ready, except those in an open batch */
        struct JobList put_back; /* ready jobs that could not be issued in this turn */
        uint64_t again_ns;       /* when they may be issued; 0: when something has ended */
        uint64_t
                library_ns; /* when what starts a library lets no more jobs go first; 0: nothing does */
        struct JobList refused; /* they end after their predecessors */
        uint64_t n_direct;      /* jobs taken from direct rings, ever */
        size_t n_fresh;         /* became ready since the last turn */
        Forming forming;
        struct BatchList batches; /* in flight */
        Batch *alone;             /* in flight, and nothing may run beside it */
        Quiet quiet;              /* for trials of working in place */
        bool open;
        bool dirty;     /* something changed that a waiting job may depend on */
        bool is_urgent; /* a job became ready since the last turn */

        bool has_collected; /* since the last query for a fault */
        uint64_t query_at_ns;
        uint64_t query_gap_ns;
} Runner;

/** runner_init() - into zeroed @runner. Return: 0 or -ENOMEM. */
int runner_init(Runner *runner, Context *context, Streams *streams, Quiesce *quiesce,
                Output *output, const JobTables *tables, const RunnerSettings *settings);
/** runner_add() - a new job. @ret_job: may be NULL. Return: as job_new(). */
int runner_add(Runner *runner, const WorkerJob *message, const WorkerJobParts *parts,
               Job **ret_job);
/** runner_changed() - an arena or a module is ready, or has failed. */
void runner_changed(Runner *runner);
/**
 * runner_open() - start issuing jobs
 * @image: gpuq's own kernels, which stay loaded; NULL: there are none
 *
 * Not earlier, because loading them later would have to wait until nothing runs.
 */
void runner_open(Runner *runner, const Image *image);
/** runner_forget_addresses() - an arena was added, or will be unmapped. */
void runner_forget_addresses(Runner *runner);
/** runner_forget_functions() - a module will be unloaded. */
void runner_forget_functions(Runner *runner);
/**
 * runner_collect() - collect finished work
 * @ret_any: set to true if there was any
 *
 * Jobs that end are in runner->ended. Return: 0, or FAILURE_E_FAULT.
 */
int runner_collect(Runner *runner, uint64_t now_ns, bool *ret_any);
/**
 * runner_turn() - issue what may be issued; runner_collect() must have been called
 * @ret_any: set to true if anything happened
 *
 * Tasks for a quiesce point run as soon as nothing is in flight and all ends have been reported.
 * Refused jobs are in runner->ended. Return: 0, or FAILURE_E_FAULT.
 */
int runner_turn(Runner *runner, uint64_t now_ns, bool *ret_any);
/** runner_next_late() - a job that exceeded its timeout, returned once each; NULL: no more. */
Job *runner_next_late(Runner *runner, uint64_t now_ns);
/** runner_free_ended() - free the jobs in runner->ended. */
void runner_free_ended(Runner *runner);
/** runner_is_idle() - no job waits or is in flight. */
bool runner_is_idle(const Runner *runner);
/** runner_is_holding() - jobs wait briefly for others: the loop must keep turning. */
bool runner_is_holding(const Runner *runner);
/** runner_waits_for() - why it holds jobs back. */
WorkerWait runner_waits_for(const Runner *runner);
/** runner_phase() - the phase of an unfinished job. */
WorkerPhase runner_phase(const Job *job);

/* shared between runner.c and runner_issue.c */

/** runner_find() - a waiting job or one in flight. Return: NULL: none has this id. */
Job *runner_find(const Runner *runner, uint64_t id);
/** runner_let_go() - the job was issued or refused; its successors may become ready. */
void runner_let_go(Runner *runner, Job *job);
/**
 * runner_end() - end a job that is in no batch and not in runner->ready; a refused job waits for
 * its predecessors
 */
void runner_end(Runner *runner, Job *job);
/** runner_end_batch() - end all jobs of a batch, whatever their result. */
void runner_end_batch(Runner *runner, Batch *batch);
/** runner_is_quiet() - work that is not urgent waits for work in flight: for a trial, or for a waiting job. */
bool runner_is_quiet(const Runner *runner, uint64_t now_ns);
/**
 * runner_issue_all() - issue all ready jobs that may be issued
 *
 * @ret_any: whether there were any.
 *
 * Return: 0, or FAILURE_E_FAULT.
 */
int runner_issue_all(Runner *runner, uint64_t now_ns, bool *ret_any);

#endif
