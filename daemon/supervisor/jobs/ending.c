/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include <string.h>

#include "cursor.h"
#include "dependency.h"
#include "engine.h"
#include "express.h"
#include "follow.h"
#include "inflight.h"
#include "module.h"
#include "place.h"
#include "policy.h"
#include "submitter.h"
#include "trace.h"
#include "util/activity.h"
#include "util/list.h"

#define ENDING_OUTPUT_MAX (64u << 10) /* bytes of kernels' output kept for a job */

static LedgerEnd ending_of(const Job *job) {
        return (LedgerEnd){
                .state = (int32_t)job->state,
                .code = job->outcome.failure ? job->outcome.failure->code : 0,
                .root = job->outcome.failure ? job->outcome.failure->root : 0,
                .device = job->device ? job->device->index : 0,
                .waited_us = job_waited_us(job, job->clock.ended_ns),
                .ran_us = job->outcome.ran_us,
                .gpu_ns = job->outcome.gpu_ns,
        };
}

static void ending_remember(const Job *job, const LedgerEnd *end) {
        const Failure *failure = job->outcome.failure;
        unsigned hash = job_is_made(job) ? job->hh.hashv : history_hash(job->id);
        HistoryEntry *entry =
                history_enter(job->user->history, job->id, hash, failure ? failure->text : NULL);

        entry->state = job->state;
        entry->code = end->code;
        entry->root = end->root;
        entry->device = end->device;
        entry->waited_us = end->waited_us;
        entry->ran_us = end->ran_us;
        job_note_times(job, job->clock.ended_ns, &entry->times);
}

/* Before any client is told: the next supervisor reports the same end and does not run the job
 * again. */
static void ending_record(Job *job, const LedgerEnd *end) {
        LedgerOwner owner = job_owner(job);

        job->record = ledger_job_ended(job->engine->ledger, job->record, &owner, end,
                                       job->outcome.failure ? job->outcome.failure->text : NULL);
}

/* Its kernels ran well. */
static void ending_trust(const Job *job) {
        Suspects *suspects = &job->user->suspects;

        for (size_t i = 0; suspects->n_keys && i < job->work.n_kernels; ++i)
                suspects_clear(suspects, suspects_key(job->work.kernels[i].module->name,
                                                      job->work.kernels[i].name));
}

/* Beside a long job of another context a short one takes some slices of the driver more, which is not
 * its own doing. */
static bool ending_teaches(const Job *job, const Executor *executor) {
        return !executor->is_express || job->outcome.ran_us * 1000 >= EXPRESS_START_NS;
}

static void ending_learn_duration(const Job *job, Executor *executor) {
        uint64_t class = job->cost.is_away ? job_away_class(job->cost.class) : job->cost.class;
        uint64_t expected_ns;

        duration_learn(job->user->duration, class, job->outcome.ran_us * 1000, job->cost.n_beside,
                       job->cost.busy_ns);
        if (job->cost.is_long || job->cost.is_away || job->cost.busy_ns < EXPRESS_START_NS)
                return;
        expected_ns = duration_expected(job->user->duration, job->cost.class);
        if (expected_ns >= EXPRESS_START_NS)
                inflight_note_long(executor, job->cost.class, expected_ns);
}

static void ending_learn(const Job *job, JobState state, Executor *executor) {
        bool was_late = job->outcome.failure && job->outcome.failure->code == FAILURE_TIMEOUT;

        if (state == JOB_DONE)
                ending_trust(job);
        if ((state == JOB_DONE || was_late) && ending_teaches(job, executor))
                ending_learn_duration(job, executor);
}

static void ending_count(UserTotals *totals, JobState state) {
        if (state == JOB_DONE)
                totals->n_done++;
        else if (state == JOB_FAILED)
                totals->n_failed++;
        else
                totals->n_cancelled++;
}

/* Removes the job from every table; what is left is the report to its client. */
static void ending_unlink(Job *job) {
        if (!job_is_made(job))
                return;

        HASH_DEL(job->engine->jobs, job);
        if (!LIST_EMPTY(&job->user->cursors))
                cursor_pass(job);
        TAILQ_REMOVE(&job->user->jobs, job, user_link);
        job->is_gap = dependency_is_behind(job) && (job->submitter || job_has_followers(job));
        if (job->submitter && !job->is_gap)
                order_remove(job->submitter->order, job->edges.node);
}

static void ending_leave(Job *job) {
        if (job->state == JOB_RUNNING)
                place_leave(job);
        else
                place_withdraw(job);
}

static void ending_leave_submitter(Job *job) {
        if (!job->submitter)
                return;
        if (job_is_made(job))
                TAILQ_REMOVE(&job->submitter->jobs, job, submitter_link);
        if (job->is_gap)
                TAILQ_INSERT_TAIL(&job->submitter->gaps, job, submitter_link);
}

static void ending_report(Job *job) {
        JobWatch *watch;

        while ((watch = LIST_FIRST(&job->watches))) {
                job_unwatch(watch);
                watch->ended(watch, job);
        }
        job_set_place(job, JOB_ENDED);
        ending_leave_submitter(job);
        if (submitter_is_there(job->submitter)) {
                job->submitter->ops->job_ended(job->submitter, job);
                return;
        }
        ledger_job_forgone(job->engine->ledger, job->record);
        job_free(job);
}

/* Of texts beyond what a user may leave unread, their beginnings remain. */
static void ending_cut_texts(JobOutcome *outcome) {
        Failure *whole = outcome->failure;

        if (whole) {
                outcome->failure =
                        failure_new(whole->code, "%.*s", (int)LEDGER_TEXT_MAX, whole->text);
                failure_free(whole);
        }
        if (outcome->output) {
                free(outcome->output);
                outcome->output = strdup("[output dropped: the user has too much unread output]\n");
        }
}

static void ending_charge_texts(Job *job) {
        JobOutcome *outcome = &job->outcome;
        size_t n_bytes = 0;

        if (outcome->failure)
                n_bytes += strlen(outcome->failure->text);
        if (outcome->output)
                n_bytes += strlen(outcome->output);
        if (n_bytes &&
            user_charge(job->user, &outcome->texts, USER_RECORD_BYTES, n_bytes) == USER_E_QUOTA)
                ending_cut_texts(outcome);
}

static void ending_finish(Job *job, JobState state, Failure *failure) {
        bool was_running = job->state == JOB_RUNNING;
        Executor *executor = job->executor;
        LedgerEnd end;

        job->clock.ended_ns = engine_now(job->engine);
        job->outcome.failure = failure;
        if (failure || job->outcome.output)
                ending_charge_texts(job);
        if (was_running && !job->outcome.ran_us)
                job->outcome.ran_us = (job->clock.ended_ns - job->clock.started_ns) / 1000;

        ending_leave(job);
        if (was_running)
                ending_learn(job, state, executor);
        job_set_state(job, state);
        ending_count(&job->user->totals, state);
        end = ending_of(job);
        waits_add(&job->user->totals.waits, end.waited_us, job->clock.ended_ns);
        ending_remember(job, &end);
        ending_record(job, &end);
        if (job->engine->ends.observer)
                job->engine->ends.observer->job_ended(job->engine->ends.observer, job, &end);
        if (!LIST_EMPTY(&job->engine->ends.traces))
                trace_ended(job, executor);
        ending_unlink(job);
        if (job_has_followers(job))
                follow_ended(job);
        job_release(job);
        if (!job->is_gap)
                user_uncharge(&job->charge);
        ending_report(job);
}

void ending_done(Job *job) {
        ending_finish(job, JOB_DONE, NULL);
}

void ending_fail(Job *job, Failure *failure) {
        ending_finish(job, JOB_FAILED, failure);
}

Failure *ending_cancelled(const User *owner, const User *by) {
        if (by == owner)
                return failure_new(FAILURE_CANCELLED, "cancelled");
        return failure_new(FAILURE_CANCELLED, "cancelled by user %s", by->name);
}

void ending_cancel(Job *job, Failure *failure) {
        ending_finish(job, JOB_CANCELLED, failure);
}

/* The main executor may have memory where the express one has not. */
static bool ending_lacks_express_memory(const Job *job, const ExecutorResult *result) {
        return job->executor->is_express && result->failure &&
               result->failure->code == FAILURE_MEMORY;
}

/* Its worker could not use the data, or had no memory for the job. */
static bool ending_goes_home(const Job *job, const ExecutorResult *result) {
        return job->cost.is_away && result->failure;
}

/* No worker died, so this is no retry. */
static void ending_go_elsewhere(Job *job, Failure *failure) {
        unsigned n_retries = job->retries;

        failure_free(failure);
        job->outcome.gpu_ns = 0;
        place_return(job, job->is_alone);
        job_note_retries(job, n_retries);
}

void ending_result(Job *job, const ExecutorResult *result) {
        uint64_t elapsed_us = (engine_now(job->engine) - job->clock.started_ns) / 1000;
        bool lacks_memory = ending_lacks_express_memory(job, result);
        bool goes_home = ending_goes_home(job, result);

        job->outcome.ran_us = MIN(result->ran_us, elapsed_us);
        job->outcome.gpu_ns = job->work.timed ? result->gpu_ns : 0;
        job->cost.stream = result->stream;
        if (*result->output)
                job_set_output(job, result->output, ENDING_OUTPUT_MAX);
        inflight_note_variables(job->executor, job);
        if (lacks_memory)
                express_retire(job->executor->slot);
        if (goes_home)
                job->work.may_move = false;
        if ((lacks_memory || goes_home) && result->never_ran && !job->verdict.failure &&
            !place_has_running_follower(job))
                ending_go_elsewhere(job, result->failure);
        else if (result->failure)
                ending_fail(job, result->failure);
        else
                ending_done(job);
}

void ending_leased(const Job *job, uint64_t n, uint64_t waited_us, uint64_t ran_us) {
        EndObserver *observer = job->engine->ends.observer;

        job->user->totals.n_done += n;
        waits_add_many(&job->user->totals.waits, waited_us / n, n, engine_now(job->engine));
        if (observer)
                observer->jobs_done(observer, job, n, waited_us, ran_us);
}

void ending_drop_orphans(Executor *executor, uint64_t now_ns) {
        Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                if (job->clock.orphan_ns &&
                    now_ns - job->clock.orphan_ns > ENDING_ORPHAN_MS * 1000000ull)
                        place_end_soon(job, JOB_CANCELLED,
                                       failure_new(FAILURE_CANCELLED,
                                                   "cancelled: its client disconnected"));
}

bool ending_step(User *person) {
        Job *job = TAILQ_FIRST(&person->backlog.ending);

        if (!job)
                return false;
        job->engine->n_steps += job_steps(job);
        activity_begin(ACTIVITY_ENDING, 0, job->user->uid, (uint32_t)(job->id >> 32));
        place_withdraw(job);
        job_forget_after(job);
        ending_finish(job, job->verdict.state, TAKE_PTR(job->verdict.failure));
        return true;
}
