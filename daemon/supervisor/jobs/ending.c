/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include "dependency.h"
#include "util/list.h"
#include "module.h"
#include "policy.h"
#include "scheduler.h"
#include "submitter.h"
#include "engine.h"
#include "executor.h"

static LedgerEnd ending_of(const Job *job) {
        return (LedgerEnd){
                .state = (int32_t)job->state,
                .code = job->failure ? job->failure->code : 0,
                .root = job->failure ? job->failure->root : 0,
                .device = job->device ? job->device->index : 0,
                .waited_us = job_waited_us(job, job->ended_ns),
                .ran_us = job->ran_us,
                .gpu_ns = job->gpu_ns,
        };
}

static void ending_remember(const Job *job, const LedgerEnd *end) {
        history_add(job->user->history, &(HistoryEntry){
                                                .id = job->id,
                                                .state = job->state,
                                                .code = end->code,
                                                .root = end->root,
                                                .device = end->device,
                                                .waited_us = end->waited_us,
                                                .ran_us = end->ran_us,
                                                .text = job->failure ? job->failure->text : NULL,
                                        });
}

/* Before anybody is told: one who takes over tells the same, and does not run it again. */
static void ending_record(Job *job, const LedgerEnd *end) {
        LedgerOwner owner = job_owner(job);

        job->record = ledger_job_ended(job->engine->ledger, job->record, &owner, end,
                                       job->failure ? job->failure->text : NULL);
}

/* Its kernels behaved. */
static void ending_trust(const Job *job) {
        Suspects *suspects = &job->user->suspects;

        for (size_t i = 0; suspects->n_keys && i < job->n_kernels; ++i)
                suspects_clear(suspects,
                               suspects_key(job->kernels[i].module->name, job->kernels[i].name));
}

static void ending_learn(const Job *job, JobState state) {
        bool was_late = job->failure && job->failure->code == FAILURE_TIMEOUT;

        if (state == JOB_DONE)
                ending_trust(job);
        if (state == JOB_DONE || was_late)
                duration_learn(job->user->duration, job->duration_class, job->ran_us * 1000,
                               job->n_beside, job->busy_ns);
}

/* Out of every table; what is left is what its client will be told. */
static void ending_unlink(Job *job) {
        if (!job->is_made)
                return;

        HASH_DEL(job->engine->jobs, job);
        TAILQ_REMOVE(&job->user->jobs, job, user_link);
        if (job->submitter)
                order_remove(job->submitter->order, job->order_node);
}

static void ending_leave(Job *job) {
        if (job->state == JOB_RUNNING)
                scheduler_leave_worker(job);
        else
                scheduler_withdraw(job);
}

static void ending_report(Job *job) {
        JobWatch *watch;

        while ((watch = LIST_FIRST(&job->watches))) {
                job_unwatch(watch);
                watch->ended(watch, job);
        }
        job->place = JOB_ENDED;
        if (job->submitter) {
                if (job->is_made)
                        TAILQ_REMOVE(&job->submitter->jobs, job, submitter_link);
                job->submitter->ops->job_ended(job->submitter, job);
                return;
        }
        ledger_job_forgone(job->engine->ledger, job->record);
        job_free(job);
}

static void ending_finish(Job *job, JobState state, Failure *failure) {
        bool was_running = job->state == JOB_RUNNING;
        LedgerEnd end;

        job->ended_ns = engine_now(job->engine);
        job->failure = failure;
        if (was_running && !job->ran_us)
                job->ran_us = (job->ended_ns - job->started_ns) / 1000;

        ending_leave(job);
        if (was_running)
                ending_learn(job, state);
        job_set_state(job, state);
        end = ending_of(job);
        ending_remember(job, &end);
        ending_record(job, &end);
        ending_unlink(job);
        dependency_ended(job);
        job_release(job);
        user_uncharge(&job->charge);
        ending_report(job);
}

void ending_done(Job *job) {
        ending_finish(job, JOB_DONE, NULL);
}

void ending_fail(Job *job, Failure *failure) {
        ending_finish(job, JOB_FAILED, failure);
}

void ending_cancel(Job *job, Failure *failure) {
        ending_finish(job, JOB_CANCELLED, failure);
}

void ending_doom(Job *job, JobState state, Failure *failure) {
        if (job->doom || job_is_ended(job)) {
                failure_free(failure);
                return;
        }

        job->doom = failure;
        job->doom_state = state;
        if (job->is_held) /* the takeover goes on from here */
                return;
        if (job->state == JOB_RUNNING && !job->delivery.is_queued) {
                if (!dependency_is_behind(job))
                        job->engine->executor_ops->stop_soon(job->executor);
                return;
        }
        if (job->state == JOB_RUNNING)
                scheduler_return(job, job->is_alone);
        scheduler_withdraw(job);
        job->place = JOB_DOOMED;
        TAILQ_INSERT_TAIL(&job->engine->doomed, job, link);
}

bool ending_doom_late(Job *job) {
        char names[256];

        if (job->doom)
                return false;
        job_kernel_names(job, names, sizeof(names));
        job->doom_state = JOB_FAILED;
        job->doom = failure_new(FAILURE_TIMEOUT, "%s ran longer than its timeout of %.3f s", names,
                                (double)job->timeout_ms / 1000);
        return true;
}

void ending_run(Engine *engine) {
        Job *job;

        while ((job = TAILQ_FIRST(&engine->doomed))) {
                scheduler_withdraw(job);
                ending_finish(job, job->doom_state, TAKE_PTR(job->doom));
        }
}
