/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From ready to in flight: which jobs go together, on which stream, and what happens to jobs that cannot
 * be issued.
 */
#include "util/macro.h"
#include "worker/checked.h"
#include "worker/library.h"
#include "worker/runner.h"

/* A batch waits this long for scratch that others hold, before it takes its own from the pool. */
#define RUNNER_SCRATCH_NS (10 * QUIET_NS)
/* A job that starts a library waits this long for others, before they wait for it. */
#define RUNNER_LIBRARY_NS UINT64_C(100000000)

/* ---- behind what is in flight ------------------------------------------------------------ */

/* The stream of its first predecessor in flight, or NULL. @ret_several: others are on other
 * streams. */
static Stream *runner_stream_before(const Runner *runner, const Job *job, bool *ret_several) {
        Stream *stream = NULL;

        *ret_several = false;
        for (size_t i = 0; i < job->order.n_after; ++i) {
                const Job *before = runner_find(runner, job->order.after[i]);

                if (!before || before->state != JOB_IN_FLIGHT)
                        continue;
                if (!stream)
                        stream = before->batch->stream;
                *ret_several |= before->batch->stream != stream;
        }
        return stream;
}

/* A batch of one job. */
static int runner_wait_elsewhere(Runner *runner, Batch *batch, Job *job) {
        int r;

        for (size_t i = 0; i < job->order.n_after; ++i) {
                const Job *before = runner_find(runner, job->order.after[i]);

                if (!before || before->state != JOB_IN_FLIGHT ||
                    before->batch->stream == batch->stream)
                        continue;
                r = result_check(
                        runner->context->cu,
                        ticket_wait(runner->streams, &before->batch->ticket, batch->stream),
                        GPUQ__V1__CODE__E_LAUNCH, "cuStreamWaitEvent", &job->failure);
                if (r)
                        return r;
                batch->waits_elsewhere = true;
        }
        return 0;
}

static int runner_choose_stream(Runner *runner, Batch *batch) {
        Job *job = TAILQ_FIRST(&batch->jobs);

        if (!batch->stream) {
                batch->stream = streams_choose(runner->streams, stream_class(job->priority));
                return 0;
        }
        if (batch->n_jobs > 1)
                return 0;
        return runner_wait_elsewhere(runner, batch, job);
}

/* ---- the start of a batch ------------------------------------------------------------------ */

static void runner_fly(Runner *runner, Batch *batch) {
        Job *job;

        TAILQ_INSERT_TAIL(&runner->batches, batch, link);
        TAILQ_FOREACH (job, &batch->jobs, queue) {
                TAILQ_REMOVE(&runner->waiting, job, link);
                TAILQ_INSERT_TAIL(&runner->in_flight, job, link);
                job->state = JOB_IN_FLIGHT;
                job->batch = batch;
                runner_let_go(runner, job);
        }
        if (TAILQ_FIRST(&batch->jobs)->program->has_printf)
                runner->alone = batch;
}

/* Its jobs become ready again, before all others, at the end of the turn. */
static void runner_put_back(Runner *runner, Batch *batch) {
        TAILQ_CONCAT(&runner->put_back, &batch->jobs, queue);
        batch_free(batch, &runner->blocks);
}

/* The same; they are tried again at that time, or when something has ended. */
static int runner_wait(Runner *runner, Batch *batch, uint64_t again_ns) {
        runner_put_back(runner, batch);
        runner->again_ns = runner->again_ns > 0 ? MIN(runner->again_ns, again_ns) : again_ns;
        return 0;
}

/*
 * Return: 0: in flight, refused and ended, or put back for a moment; FAILURE_E_WAIT: put back until
 * something has ended, and other batches would wait too; FAILURE_E_FAULT.
 */
static int runner_issue_chosen(Runner *runner, Batch *batch) {
        int r;

        r = issue_batch(&runner->issuer, batch);
        /* A kernel that faults at once may be reported by the next call that issues its own job:
         * the job ran. */
        if (r == 0 || (r == FAILURE_E_FAULT && batch->ticket.stream)) {
                runner_fly(runner, batch);
                return r;
        }
        if (r == FAILURE_E_FAULT)
                return r;
        if (r == FAILURE_E_WAIT && batch->may_wait)
                return runner_wait(runner, batch, batch->issued_ns + QUIET_NS);
        if (r == FAILURE_E_WAIT) {
                runner_put_back(runner, batch);
                return r;
        }

        runner_end_batch(runner, batch);
        return 0;
}

/* The batch's only job knows why it cannot wait for others. */
static int runner_refuse(Runner *runner, Batch *batch, int error) {
        if (error == FAILURE_E_FAULT)
                return error;
        runner_end_batch(runner, batch);
        return 0;
}

/* ---- beside what is in flight ---------------------------------------------------------------- */

/* All that is in flight may end in a moment. */
static bool runner_is_young(const Runner *runner, uint64_t now_ns) {
        const Batch *oldest = TAILQ_FIRST(&runner->batches);

        return oldest && now_ns < oldest->issued_ns + QUIET_NS;
}

/* Urgent work does not wait. */
static InPlaceBeside runner_beside(const Runner *runner, const Batch *batch, uint64_t now_ns) {
        if (TAILQ_EMPTY(&runner->batches))
                return IN_PLACE_ALONE;
        return runner_is_young(runner, now_ns) && batch->kind.class != STREAM_HIGH &&
                               quiet_may_be(&runner->quiet, now_ns)
                       ? IN_PLACE_BESIDE_NEW
                       : IN_PLACE_BESIDE_OLD;
}

/* ---- a batch goes ------------------------------------------------------------------------- */

/* Return: as runner_issue_chosen(). */
static int runner_issue(Runner *runner, Batch *batch, uint64_t now_ns) {
        Batch *rest = NULL;
        int r;

        if (TAILQ_EMPTY(&runner->batches))
                quiet_end(&runner->quiet);
        if (runner_is_quiet(runner, now_ns) && batch->kind.class != STREAM_HIGH)
                return runner_wait(runner, batch, runner->quiet.until_ns);
        r = runner_choose_stream(runner, batch);
        if (r)
                return runner_refuse(runner, batch, r);

        batch->may_wait =
                runner_is_young(runner, now_ns) &&
                now_ns < batch->formed_ns + runner->settings.coalesce_ns + RUNNER_SCRATCH_NS;
        issue_choose(&runner->issuer, batch, runner_beside(runner, batch, now_ns), now_ns);
        if (batch->choice.quiet_ns > 0)
                quiet_ask(&runner->quiet, batch->choice.quiet_ns, now_ns);
        if (batch->choice.wait)
                return runner_wait(runner, batch, runner->quiet.until_ns);
        if (batch->choice.only_one && batch->n_jobs > 1)
                rest = batch_split(batch, &runner->blocks);
        r = runner_issue_chosen(runner, batch);
        if (!rest)
                return r;
        if (r) {
                runner_put_back(runner, rest);
                return r;
        }
        return runner_issue(runner, rest, now_ns);
}

/* Batches that waited long enough for more jobs, or all of them. */
static int runner_issue_formed(Runner *runner, uint64_t now_ns, bool all) {
        Batch *batch, *next;
        int r;

        for (batch = TAILQ_FIRST(&runner->forming.open); batch; batch = next) {
                next = TAILQ_NEXT(batch, link);
                if (!all && now_ns - batch->formed_ns < runner->settings.coalesce_ns)
                        continue;
                forming_close(&runner->forming, batch);
                r = runner_issue(runner, batch, now_ns);
                if (r)
                        return r;
        }
        return 0;
}

/* ---- from ready to a batch ------------------------------------------------------------------- */

static int runner_collect_into(Runner *runner, Batch *batch, Job *job, uint64_t now_ns) {
        batch_add(batch, job);
        if (!batch_is_full(batch))
                return 0;
        forming_close(&runner->forming, batch);
        return runner_issue(runner, batch, now_ns);
}

/* The job is in no list. Return: as runner_issue_chosen(). */
static int runner_place(Runner *runner, Job *job, uint64_t now_ns) {
        bool several, alone = !issuer_may_batch(&runner->issuer) || !job->kind.function;
        Stream *stream = runner_stream_before(runner, job, &several);
        Batch *batch;

        alone |= several || job->alone;
        batch = alone ? NULL : forming_find(&runner->forming, job, stream);
        if (batch)
                return runner_collect_into(runner, batch, job, now_ns);

        batch = batch_new(&runner->blocks, job, stream, now_ns);
        if (!batch) {
                failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY, "the worker is out of memory");
                runner_end(runner, job);
                return 0;
        }
        if (alone) {
                batch->kind.function = NULL;
                return runner_issue(runner, batch, now_ns);
        }
        batch = forming_open(&runner->forming, batch);
        return batch ? runner_issue(runner, batch, now_ns) : 0;
}

/* What was formed goes first. Return: FAILURE_E_WAIT: the job, and those behind it, wait until nothing runs. */
static int runner_drain(Runner *runner, Job *job, uint64_t now_ns) {
        int r = runner_issue_formed(runner, now_ns, true);

        if (r == 0 && runner->streams->n_busy == 0)
                return 0;
        TAILQ_INSERT_HEAD(&runner->ready, job, queue);
        return r ? r : FAILURE_E_WAIT;
}

/* Its library may wait for running kernels, so it starts when nothing runs. It lets others go first, but not for ever. */
static int runner_await_library(Runner *runner, Job *job, uint64_t now_ns) {
        if (runner->library_ns == 0)
                runner->library_ns = now_ns + RUNNER_LIBRARY_NS;
        if (now_ns >= runner->library_ns)
                return runner_drain(runner, job, now_ns);
        TAILQ_INSERT_TAIL(&runner->put_back, job, queue);
        runner->again_ns = runner->again_ns > 0 ? MIN(runner->again_ns, runner->library_ns)
                                                : runner->library_ns;
        return FAILURE_E_WAIT_ALONE;
}

/* A job whose kernel prints runs when nothing else does. */
static int runner_make_room(Runner *runner, Job *job, uint64_t now_ns) {
        if (job->program->has_printf)
                return runner_drain(runner, job, now_ns);
        if (!job->program->has_new_library)
                return 0;
        if (runner->streams->n_busy > 0)
                return runner_await_library(runner, job, now_ns);
        runner->library_ns = 0;
        return 0;
}

static int runner_check(Runner *runner, Job *job, uint64_t now_ns) {
        int r;

        library_set_busy(runner->context->library, runner->streams->n_busy > 0);
        r = job_check(job, &runner->programs);
        if (r != FAILURE_E_WAIT)
                return r;
        r = runner_await_library(runner, job, now_ns);
        return r ? r : runner_check(runner, job, now_ns);
}

/* Likewise. */
static int runner_try(Runner *runner, Job *job, uint64_t now_ns) {
        int r = 0;

        if (!job->program)
                r = runner_check(runner, job, now_ns);
        if (r == FAILURE_E_WAIT_ALONE)
                return 0;
        if (r == FAILURE_E_FAULT || r == FAILURE_E_WAIT)
                return r;
        if (r < 0)
                failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY, "the worker is out of memory");
        if (r) {
                runner_end(runner, job); /* refused */
                return 0;
        }

        if (!checked_is_free(job)) { /* it is tried again when something has ended */
                TAILQ_INSERT_TAIL(&runner->put_back, job, queue);
                return 0;
        }
        r = runner_make_room(runner, job, now_ns);
        if (r == FAILURE_E_WAIT_ALONE)
                return 0;
        if (r)
                return r;
        return runner_place(runner, job, now_ns);
}

/*
 * Every ready job once; those that become ready meanwhile come at the end. What
 * is not prepared goes back.
 */
static int runner_pass(Runner *runner, uint64_t now_ns, bool *ret_any) {
        struct JobList unprepared = TAILQ_HEAD_INITIALIZER(unprepared);
        Job *job;
        int r = 0;

        while (r == 0 && !runner->alone && (job = TAILQ_FIRST(&runner->ready))) {
                TAILQ_REMOVE(&runner->ready, job, queue);
                if (!job_is_prepared(job)) {
                        TAILQ_INSERT_TAIL(&unprepared, job, queue);
                        continue;
                }
                r = runner_try(runner, job, now_ns);
                *ret_any |= r == 0;
        }
        TAILQ_CONCAT(&unprepared, &runner->ready, queue);
        TAILQ_CONCAT(&runner->ready, &unprepared, queue);
        return r;
}

/* What was formed goes even if a later job must wait; issuing it makes others ready. */
int runner_issue_all(Runner *runner, uint64_t now_ns, bool *ret_any) {
        int r, s;

        runner->dirty = false;
        runner->is_urgent = false;
        runner->again_ns = 0;
        do {
                runner->n_fresh = 0;
                r = runner_pass(runner, now_ns, ret_any);
                if (r == FAILURE_E_FAULT)
                        return r;
                s = runner_issue_formed(runner, now_ns, false);
                if (s == FAILURE_E_FAULT)
                        return s;
        } while (r == 0 && s == 0 && runner->n_fresh > 0 && !runner->alone);

        TAILQ_CONCAT(&runner->put_back, &runner->ready, queue);
        TAILQ_CONCAT(&runner->ready, &runner->put_back, queue);
        return 0;
}
