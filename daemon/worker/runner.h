/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_RUNNER_H
#define GPUQ_WORKER_RUNNER_H

/*
 * Runner
 *
 * The jobs of this worker: which may be issued now, which are in flight, which
 * have ended. Completions are polled; a fault is asked for at a falling rate,
 * since it shows nowhere else. Never waits.
 */

#include "worker/arenas.h"
#include "worker/issue.h"
#include "worker/output.h"

typedef struct Runner {
        Context *context;
        Streams *streams;
        Drain *drain;
        Output *output;
        Issuer issuer;
        JobTables tables;

        Job *by_id; /* waiting and in flight */
        struct JobList waiting, in_flight, ended;
        Job *alone; /* in flight, and nothing may be beside it */
        bool dirty; /* something changed that a waiting job may have waited for */

        uint64_t query_at_ns;
        uint64_t query_gap_ns;
} Runner;

/** runner_init() - into zeroed @runner. */
void runner_init(Runner *runner, Context *context, Streams *streams, Drain *drain, Output *output,
                 const JobTables *tables);
/** runner_add() - a new job. Return: 0 or -ENOMEM. */
int runner_add(Runner *runner, const Gpuq__Worker__WorkerJob *message);
/** runner_changed() - an arena or a module is ready, or has failed. */
void runner_changed(Runner *runner);
/**
 * runner_turn() - collect what is done, then issue what may be
 * @ret_any: whether anything happened
 *
 * Jobs that end are in runner->ended. Return: 0, or FAILURE_E_FAULT.
 */
int runner_turn(Runner *runner, uint64_t now_ns, bool *ret_any);
/** runner_collect() - only the first half. Return: 0, or FAILURE_E_FAULT. */
int runner_collect(Runner *runner, uint64_t now_ns, bool *ret_any);
/** runner_next_late() - a job that ran past its timeout, told once each; NULL: no more. */
Job *runner_next_late(Runner *runner, uint64_t now_ns);
/** runner_free_ended() - forget those in runner->ended. */
void runner_free_ended(Runner *runner);
/** runner_is_idle() - nothing waits, nothing is in flight. */
bool runner_is_idle(const Runner *runner);
/** runner_waiting() - what all jobs wait for, or "". */
const char *runner_waiting(const Runner *runner);
/** runner_phase() - how far a job is that has not ended. */
Gpuq__Worker__Phase runner_phase(const Job *job);

#endif
