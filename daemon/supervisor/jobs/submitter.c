/* SPDX-License-Identifier: Apache-2.0 */
#include "submitter.h"

#include <string.h>

#include "arena.h"
#include "dependency.h"
#include "ending.h"
#include "engine.h"
#include "limit.h"
#include "recovery.h"
#include "scheduler.h"
#include "util/list.h"

int submitter_init(Submitter *submitter, Engine *engine, User *user, uint32_t id,
                   const SubmitterOps *ops) {
        submitter->id = id;
        submitter->engine = engine;
        submitter->user = user;
        submitter->ops = ops;
        TAILQ_INIT(&submitter->jobs);
        LIST_INIT(&submitter->modules);
        LIST_INIT(&submitter->making);
        return order_new(&submitter->order);
}

/* The last first, so that none starts because one before it ended. */
static void submitter_abandon_jobs(Submitter *submitter) {
        uint64_t now_ns = engine_now(submitter->engine);
        Job *job;

        while ((job = TAILQ_LAST(&submitter->jobs, SubmitterJobs))) {
                TAILQ_REMOVE(&submitter->jobs, job, submitter_link);
                job->submitter = NULL;
                job->orphan_ns = now_ns;
                if (job->state == JOB_WAITING || job->delivery.is_queued)
                        ending_doom(job, JOB_CANCELLED,
                                    failure_new(FAILURE_CANCELLED, "its client is gone"));
        }
}

static void submitter_abandon_arenas(Submitter *submitter) {
        Arena *arena;

        while ((arena = LIST_FIRST(&submitter->making))) {
                LIST_REMOVE(arena, maker_link);
                arena->maker = NULL;
        }
}

void submitter_close(Submitter *submitter) {
        Module *module;

        if (!submitter->order)
                return;
        submitter_abandon_jobs(submitter);
        while ((module = LIST_FIRST(&submitter->modules)))
                module_detach(module);
        submitter_abandon_arenas(submitter);
}

void submitter_fini(Submitter *submitter) {
        order_free(submitter->order);
        submitter->order = NULL;
}

/* ---- jobs ------------------------------------------------------------------ */

static int submitter_enter(Submitter *submitter, Job *job) {
        Engine *engine = submitter->engine;

        HASH_ADD(hh, engine->jobs, id, sizeof(job->id), job);
        if (!job->hh.tbl)
                return -ENOMEM;
        TAILQ_INSERT_TAIL(&submitter->user->jobs, job, user_link);
        TAILQ_INSERT_TAIL(&submitter->jobs, job, submitter_link);
        job->is_made = true;
        submitter->user->n_waiting++;
        return 0;
}

static Failure *submitter_no_memory(void) {
        return failure_new(FAILURE_MEMORY, "no memory for a job");
}

Failure *submitter_submit(Submitter *submitter, const JobSpec *spec, const LedgerJob *known) {
        _cleanup_(job_freep) Job *job = NULL;

        if (job_new(submitter->engine, spec, submitter->user, &job) < 0)
                return submitter_no_memory();
        if (user_charge(submitter->user, &job->charge, USER_JOBS, 1) == USER_E_QUOTA)
                return limit_failure(submitter->user, USER_JOBS, 1);

        job->submitter = submitter;
        job->record = known->slot;
        job->is_held = known->state == LEDGER_SENT;
        job->retries = known->sent.retries;
        job->submitted_ns = engine_now(submitter->engine);
        if (dependency_derive(job) < 0)
                return submitter_no_memory();

        if (submitter_enter(submitter, job) < 0) {
                order_remove(submitter->order, job->order_node);
                return submitter_no_memory();
        }
        scheduler_consider(job);
        (void)TAKE_PTR(job);
        return NULL;
}

static void submitter_settle_job(Job *job) {
        Failure *doom = TAKE_PTR(job->doom);

        job->is_held = false;
        if (doom)
                ending_doom(job, job->doom_state, doom);
        else
                recovery_run_unattached(job);
}

void submitter_settle(Submitter *submitter) {
        Job *job, *next;

        TAILQ_FOREACH (job, &submitter->jobs, submitter_link)
                job->was_overtaken = job->is_held && job_is_overtaken(job);
        TAILQ_FOREACH_SAFE (job, &submitter->jobs, submitter_link, next)
                if (job->is_held)
                        submitter_settle_job(job);
}

/* It never enters a table: it exists to be told. */
static Job *submitter_make_ended(Submitter *submitter, uint64_t id) {
        JobSpec spec = {.id = id, .label = "", .device = -1};
        Job *job;

        if (job_new(submitter->engine, &spec, submitter->user, &job) < 0)
                return NULL;
        job->submitter = submitter;
        return job;
}

int submitter_refuse(Submitter *submitter, uint64_t id, Failure *failure) {
        Job *job = submitter_make_ended(submitter, id);

        if (!job) {
                failure_free(failure);
                return -ENOMEM;
        }
        job->submitted_ns = engine_now(submitter->engine);
        ending_fail(job, failure);
        return 0;
}

int submitter_recall(Submitter *submitter, const LedgerJob *known) {
        Job *job = submitter_make_ended(submitter, known->owner.id);
        Engine *engine = submitter->engine;

        if (!job)
                return -ENOMEM;
        job->record = known->slot;
        job->state = (JobState)known->end.state;
        job->place = JOB_ENDED;
        job->failure = known->end.code ? failure_new(known->end.code, "%s", known->text) : NULL;
        job->device =
                known->end.device < engine->n_devices ? &engine->devices[known->end.device] : NULL;
        job->submitted_ns = 1;
        job->started_ns = 1 + known->end.waited_us * 1000;
        job->ran_us = known->end.ran_us;
        job->gpu_ns = known->end.gpu_ns;
        submitter->ops->job_ended(submitter, job);
        return 0;
}

/* ---- arenas ---------------------------------------------------------------- */

void submitter_ask_arena(Submitter *submitter, Arena *arena) {
        arena->maker = submitter;
        LIST_INSERT_HEAD(&submitter->making, arena, maker_link);
}
