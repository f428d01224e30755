/* SPDX-License-Identifier: Apache-2.0 */
#include "submission.h"

#include "arena.h"
#include "dependency.h"
#include "ending.h"
#include "engine.h"
#include "module.h"
#include "overtaken.h"
#include "place.h"
#include "recovery.h"
#include "slot.h"
#include "util/list.h"

/* The last job first, so that no job starts because an earlier one ended. */
static void submission_abandon_job(Submitter *submitter, Job *job) {
        TAILQ_REMOVE(&submitter->jobs, job, submitter_link);
        order_remove(submitter->order, job->edges.node);
        job->submitter = NULL;
        job->clock.orphan_ns = engine_now(submitter->engine);
        if (job->state == JOB_WAITING || job->delivery.is_queued)
                place_end_soon(
                        job, JOB_CANCELLED,
                        failure_new(FAILURE_CANCELLED, "cancelled: its client disconnected"));
}

static void submission_abandon_gap(Submitter *submitter, Job *gap) {
        TAILQ_REMOVE(&submitter->gaps, gap, submitter_link);
        order_remove(submitter->order, gap->edges.node);
        gap->submitter = NULL;
}

/* Return: false: none is left. */
static bool submission_abandon_one(Submitter *submitter) {
        Job *job = TAILQ_LAST(&submitter->jobs, SubmitterJobs),
            *gap = TAILQ_FIRST(&submitter->gaps);

        if (!job && !gap)
                return false;
        submitter->engine->n_steps += job_steps(job ? job : gap);
        if (job)
                submission_abandon_job(submitter, job);
        else
                submission_abandon_gap(submitter, gap);
        return true;
}

static void submission_abandon_arenas(Submitter *submitter) {
        Arena *arena;

        while ((arena = LIST_FIRST(&submitter->making))) {
                LIST_REMOVE(arena, maker_link);
                arena->maker = NULL;
                /* A worker would start for what nobody wants any more. */
                if (!arena->slot || !slot_is_making(arena->slot, arena))
                        slot_forget_arena(arena);
        }
}

static void submission_begin_close(Submitter *submitter) {
        Module *module;

        submitter->is_closing = true;
        while ((module = LIST_FIRST(&submitter->modules)))
                module_detach(module);
        submission_abandon_arenas(submitter);
}

bool submission_close(Submitter *submitter) {
        UserBacklog *backlog;

        if (!submitter->order)
                return true;
        submission_begin_close(submitter);
        for (unsigned i = 0; i < SUBMISSION_AT_ONCE; ++i)
                if (!submission_abandon_one(submitter))
                        return true;

        backlog = user_has_backlog(submitter->user, submitter->engine);
        TAILQ_INSERT_TAIL(&backlog->closing, submitter, link);
        return false;
}

void submission_close_now(Submitter *submitter) {
        if (!submitter->order)
                return;
        submission_begin_close(submitter);
        while (submission_abandon_one(submitter))
                ;
}

bool submission_step(User *person) {
        Submitter *submitter = TAILQ_FIRST(&person->backlog.closing);

        if (!submitter)
                return false;
        if (submission_abandon_one(submitter))
                return true;
        TAILQ_REMOVE(&person->backlog.closing, submitter, link);
        submitter->ops->closed(submitter);
        return true;
}

static int submission_enter(Submitter *submitter, Job *job) {
        Engine *engine = submitter->engine;

        HASH_ADD(hh, engine->jobs, id, sizeof(job->id), job);
        if (!job->hh.tbl)
                return -ENOMEM;
        TAILQ_INSERT_TAIL(&submitter->user->jobs, job, user_link);
        TAILQ_INSERT_TAIL(&submitter->jobs, job, submitter_link);
        submitter->user->n_waiting++;
        return 0;
}

static Failure *submission_no_memory(void) {
        return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a job");
}

static Failure *submission_charge(Submitter *submitter, Job *job) {
        uint64_t n_bytes = job_memory(job);

        if (user_charge(submitter->user, &job->charge, USER_JOBS, 1) == USER_E_QUOTA)
                return user_quota_failure(submitter->user, USER_JOBS, 1);
        if (user_charge(submitter->user, &job->memory, USER_QUEUED_BYTES, n_bytes) == USER_E_QUOTA)
                return user_quota_failure(submitter->user, USER_QUEUED_BYTES, n_bytes);
        return NULL;
}

Failure *submission_accept(Submitter *submitter, const JobSpec *spec, const LedgerJob *known) {
        _cleanup_(job_freep) Job *job = NULL;
        Failure *failure;

        if (job_new(submitter->engine, spec, submitter->user, &job) < 0)
                return submission_no_memory();
        failure = submission_charge(submitter, job);
        if (failure)
                return failure;

        job->submitter = submitter;
        job->work.slurm_job = spec->slurm_job ? spec->slurm_job : submitter->slurm_job;
        job->record = known->slot;
        job->is_held = known->state == LEDGER_SENT;
        job->retries = known->sent.retries;
        job->clock.submitted_ns = engine_now(submitter->engine);
        if (dependency_derive(job) < 0)
                return submission_no_memory();

        if (submission_enter(submitter, job) < 0) {
                order_remove(submitter->order, job->edges.node);
                return submission_no_memory();
        }
        place_consider(job);
        (void)TAKE_PTR(job);
        return NULL;
}

int submission_adopt(Submitter *submitter, const JobSpec *spec, Executor *executor) {
        _cleanup_(job_freep) Job *job = NULL;
        int r;

        r = job_new(submitter->engine, spec, submitter->user, &job);
        if (r < 0)
                return r;
        failure_free(submission_charge(submitter, job));
        job->submitter = submitter;
        job->work.slurm_job = submitter->slurm_job;
        job->clock.submitted_ns = engine_now(submitter->engine);
        r = dependency_derive(job);
        if (r < 0)
                return r;
        r = submission_enter(submitter, job);
        if (r < 0) {
                order_remove(submitter->order, job->edges.node);
                return r;
        }
        place_adopt(TAKE_PTR(job), executor);
        return 0;
}

static void submission_settle_job(Job *job) {
        Failure *verdict = TAKE_PTR(job->verdict.failure);

        job->is_held = false;
        if (verdict)
                place_end_soon(job, job->verdict.state, verdict);
        else
                recovery_run_unattached(job);
}

void submission_settle(Submitter *submitter) {
        size_t n_left = OVERTAKEN_STEPS_MAX;
        Job *job, *next;

        TAILQ_FOREACH (job, &submitter->jobs, submitter_link)
                if (job->is_held)
                        overtaken_mark(job, &n_left);
        TAILQ_FOREACH_SAFE (job, &submitter->jobs, submitter_link, next)
                if (job->is_held)
                        submission_settle_job(job);
}

/* It never enters a table: it exists to report the failure. */
static Job *submission_make_ended(Submitter *submitter, uint64_t id) {
        JobSpec spec = {.id = id, .label = "", .device = -1};
        Job *job;

        if (job_new(submitter->engine, &spec, submitter->user, &job) < 0)
                return NULL;
        job->submitter = submitter;
        job->work.slurm_job = submitter->slurm_job;
        return job;
}

int submission_refuse(Submitter *submitter, uint64_t id, Failure *failure) {
        Job *job = submission_make_ended(submitter, id);

        if (!job) {
                failure_free(failure);
                return -ENOMEM;
        }
        job->clock.submitted_ns = engine_now(submitter->engine);
        ending_fail(job, failure);
        return 0;
}

int submission_recall(Submitter *submitter, const LedgerJob *known) {
        Job *job = submission_make_ended(submitter, known->owner.id);
        Engine *engine = submitter->engine;

        if (!job)
                return -ENOMEM;
        job->record = known->slot;
        job->state = (JobState)known->end.state;
        job_set_place(job, JOB_ENDED);
        job->outcome.failure =
                known->end.code ? failure_new(known->end.code, "%s", known->text) : NULL;
        job->device =
                known->end.device < engine->n_devices ? &engine->devices[known->end.device] : NULL;
        job->clock.submitted_ns = 1;
        job->clock.started_ns = 1 + known->end.waited_us * 1000;
        job->outcome.ran_us = known->end.ran_us;
        job->outcome.gpu_ns = known->end.gpu_ns;
        submitter->ops->job_ended(submitter, job);
        return 0;
}
