/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_RUNNER_H
#define GPUQ_WORKER_RUNNER_H

/*
 * Runner
 *
 * The jobs of this worker: which may be issued now and together, which are in
 * flight, which have ended. Completions are polled; a fault is asked for at a falling
 * rate, since it shows nowhere else. Never waits.
 *
 * A job is ready when none that it comes after still waits. Those that are in
 * flight it follows on their stream.
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
        struct JobList ready;    /* of those that wait, but for those in an open batch */
        struct JobList put_back; /* of these, those that could not go in this turn */
        uint64_t again_ns;       /* when they may; 0: when something has ended */
        struct JobList refused;  /* that end once those before them have */
        size_t n_fresh;          /* that became ready since the last look */
        Forming forming;
        struct BatchList batches; /* in flight */
        Batch *alone;             /* in flight, and nothing may be beside it */
        Quiet quiet;              /* for those who try to work in place */
        bool open;
        bool dirty;     /* something changed that a waiting job may have waited for */
        bool is_urgent; /* a job that became ready since the last look */

        bool has_collected; /* since the last look for a fault */
        uint64_t query_at_ns;
        uint64_t query_gap_ns;
} Runner;

/** runner_init() - into zeroed @runner. Return: 0 or -ENOMEM. */
int runner_init(Runner *runner, Context *context, Streams *streams, Quiesce *quiesce,
                Output *output, const JobTables *tables, const RunnerSettings *settings);
/** runner_add() - a new job. Return: as job_new(). */
int runner_add(Runner *runner, const WorkerJob *message, const WorkerJobParts *parts);
/** runner_changed() - an arena or a module is ready, or has failed. */
void runner_changed(Runner *runner);
/**
 * runner_open() - from now on jobs are issued
 * @image: gpuq's own kernels, which stay; NULL: there are none
 *
 * Not before, because loading them later would have to wait until nothing runs.
 */
void runner_open(Runner *runner, const Image *image);
/** runner_forget_addresses() - an arena has come, or is about to go. */
void runner_forget_addresses(Runner *runner);
/** runner_forget_functions() - a module is about to go. */
void runner_forget_functions(Runner *runner);
/**
 * runner_collect() - take up what is done
 * @ret_any: set to true where anything is
 *
 * Jobs that end are in runner->ended. Return: 0, or FAILURE_E_FAULT.
 */
int runner_collect(Runner *runner, uint64_t now_ns, bool *ret_any);
/**
 * runner_turn() - issue what may be, once all that is done has been collected
 * @ret_any: set to true where anything happened
 *
 * What waits for a quiesce point is done as soon as nothing is in flight and all ends have been told. Jobs that are
 * refused are in runner->ended. Return: 0, or FAILURE_E_FAULT.
 */
int runner_turn(Runner *runner, uint64_t now_ns, bool *ret_any);
/** runner_next_late() - a job that ran past its timeout, told once each; NULL: no more. */
Job *runner_next_late(Runner *runner, uint64_t now_ns);
/** runner_free_ended() - forget those in runner->ended. */
void runner_free_ended(Runner *runner);
/** runner_is_idle() - nothing waits, nothing is in flight. */
bool runner_is_idle(const Runner *runner);
/** runner_is_holding() - jobs wait a moment for others: turns must go on. */
bool runner_is_holding(const Runner *runner);
/** runner_waiting() - what all jobs wait for, or "". */
const char *runner_waiting(const Runner *runner);
/** runner_phase() - how far a job is that has not ended. */
WorkerPhase runner_phase(const Job *job);

/* what runner.c and runner_issue.c have of each other */

/** runner_find() - waiting or in flight. Return: NULL: none of that id. */
Job *runner_find(const Runner *runner, uint64_t id);
/** runner_let_go() - it waits no longer: issued, or refused; those behind it may be ready. */
void runner_let_go(Runner *runner, Job *job);
/** runner_end() - of one in no batch and not in runner->ready; one that was refused waits for those before it. */
void runner_end(Runner *runner, Job *job);
/** runner_end_batch() - all its jobs, whatever became of them. */
void runner_end_batch(Runner *runner, Batch *batch);
/** runner_is_quiet() - what is not urgent lets what is in flight end first: a trial, or what one waits for. */
bool runner_is_quiet(const Runner *runner, uint64_t now_ns);
/** runner_issue_all() - whatever is ready and may be issued. @ret_any: whether anything was. Return: 0, or FAILURE_E_FAULT. */
int runner_issue_all(Runner *runner, uint64_t now_ns, bool *ret_any);

#endif
