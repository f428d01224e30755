/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner
 */
#include "worker/runner.h"

#define RUNNER_QUERY_FIRST_NS UINT64_C(1000000)
#define RUNNER_QUERY_LAST_NS  UINT64_C(20000000)

void runner_init(Runner *runner, Context *context, Streams *streams, Drain *drain, Output *output,
                 const JobTables *tables) {
        runner->context = context;
        runner->streams = streams;
        runner->drain = drain;
        runner->output = output;
        runner->tables = *tables;
        issuer_init(&runner->issuer, context, streams);
        TAILQ_INIT(&runner->waiting);
        TAILQ_INIT(&runner->in_flight);
        TAILQ_INIT(&runner->ended);
}

int runner_add(Runner *runner, const Gpuq__Worker__WorkerJob *message) {
        Job *job;
        int r;

        r = job_new(message, &runner->tables, &job);
        if (r < 0)
                return r;

        HASH_ADD(hh, runner->by_id, id, sizeof(job->id), job);
        TAILQ_INSERT_TAIL(&runner->waiting, job, link);
        runner->dirty = true;
        return 0;
}

void runner_changed(Runner *runner) {
        runner->dirty = true;
}

/* ---- the end of a job --------------------------------------------------------------- */

static void runner_end(Runner *runner, Job *job) {
        TAILQ_REMOVE(job->state == JOB_WAITING ? &runner->waiting : &runner->in_flight, job, link);
        HASH_DELETE(hh, runner->by_id, job);
        TAILQ_INSERT_TAIL(&runner->ended, job, link);
        job->state = JOB_ENDED;
        runner->dirty = true;

        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job->buffers[i].arena)
                        arenas_unuse(job->buffers[i].arena);
        for (size_t i = 0; i < job->n_kernels; ++i)
                if (job->kernels[i].module)
                        module_unuse(job->kernels[i].module);
}

/* The driver hands on what kernels printed when the context is synchronised; this job is alone in it. */
static int runner_take_output(Runner *runner, Job *job) {
        int r;

        r = result_check(runner->context->cu, runner->context->cu->cuCtxSynchronize(),
                         GPUQ__V1__CODE__E_LAUNCH, "cuCtxSynchronize", &job->failure);
        if (r == FAILURE_E_FAULT)
                return r;
        return output_take(runner->output, &job->output);
}

static int runner_finish(Runner *runner, Job *job, uint64_t now_ns) {
        int r = 0;

        if (job == runner->alone) {
                r = runner_take_output(runner, job);
                if (r == FAILURE_E_FAULT)
                        return r;
                runner->alone = NULL;
        }

        issue_finish(&runner->issuer, job);
        job->ran_us = (now_ns - job->issued_ns) / 1000;
        runner_end(runner, job);
        return 0;
}

int runner_collect(Runner *runner, uint64_t now_ns, bool *ret_any) {
        Job *job, *next;
        int r;

        for (job = TAILQ_FIRST(&runner->in_flight); job; job = next) {
                next = TAILQ_NEXT(job, link);
                if (!ticket_is_done(&job->ticket))
                        continue;
                r = runner_finish(runner, job, now_ns);
                if (r)
                        return r;
                *ret_any = true;
        }
        return 0;
}

void runner_free_ended(Runner *runner) {
        Job *job;

        while ((job = TAILQ_FIRST(&runner->ended))) {
                TAILQ_REMOVE(&runner->ended, job, link);
                job_free(job);
        }
}

/* ---- the start of a job ---------------------------------------------------------------- */

/* Whether a job that this one comes after has not even been issued. */
static bool runner_is_behind(Runner *runner, const Job *job) {
        for (size_t i = 0; i < job->n_after; ++i) {
                Job *other;

                HASH_FIND(hh, runner->by_id, &job->after[i], sizeof(job->after[i]), other);
                if (other && other != job && other->state == JOB_WAITING)
                        return true;
        }
        return false;
}

/* The stream of the first job that it comes after, which then waits for the others. */
static int runner_choose_stream(Runner *runner, Job *job, Stream **ret_stream) {
        Stream *stream = NULL;
        int r;

        for (size_t i = 0; i < job->n_after; ++i) {
                Job *other;

                HASH_FIND(hh, runner->by_id, &job->after[i], sizeof(job->after[i]), other);
                if (!other || other->state != JOB_IN_FLIGHT)
                        continue;
                if (!stream) {
                        stream = other->ticket.stream;
                        continue;
                }
                r = result_check(runner->context->cu,
                                 ticket_wait(runner->streams, &other->ticket, stream),
                                 GPUQ__V1__CODE__E_LAUNCH, "cuStreamWaitEvent", &job->failure);
                if (r)
                        return r;
        }
        if (!stream)
                return streams_choose(runner->streams, stream_class(job->priority), ret_stream,
                                      &job->failure);

        *ret_stream = stream;
        return 0;
}

/* Return: as issue_job(). */
static int runner_issue(Runner *runner, Job *job, uint64_t now_ns) {
        Stream *stream;
        int r;

        r = runner_choose_stream(runner, job, &stream);
        if (r)
                return r;
        r = issue_job(&runner->issuer, job, stream);
        /* A kernel that faults at once may be told by the next call that issues its own job: it ran. */
        if (r && !(r == FAILURE_E_FAULT && job->ticket.stream))
                return r;

        TAILQ_REMOVE(&runner->waiting, job, link);
        TAILQ_INSERT_TAIL(&runner->in_flight, job, link);
        job->state = JOB_IN_FLIGHT;
        if (r)
                return r;

        job->issued_ns = now_ns;
        if (job->program->has_printf)
                runner->alone = job;
        return 0;
}

/* Return: 0: issued; FAILURE_E_WAIT: nothing more now; others as issue_job(). */
static int runner_try(Runner *runner, Job *job, uint64_t now_ns) {
        int r;

        if (!job->program) {
                r = job_check(job, runner->context);
                if (r)
                        return r;
        }
        if (job->program->has_printf && runner->streams->n_busy > 0)
                return FAILURE_E_WAIT;
        return runner_issue(runner, job, now_ns);
}

static int runner_issue_all(Runner *runner, uint64_t now_ns, bool *ret_any) {
        Job *job, *next;
        int r;

        runner->dirty = false;
        for (job = TAILQ_FIRST(&runner->waiting); job; job = next) {
                next = TAILQ_NEXT(job, link);
                if (runner->alone || drain_waiting(runner->drain))
                        return 0;
                if (!job_is_prepared(job) || runner_is_behind(runner, job))
                        continue;

                r = runner_try(runner, job, now_ns);
                if (r == FAILURE_E_WAIT)
                        return 0;
                if (r == FAILURE_E_FAULT)
                        return r;
                if (r < 0)
                        r = failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY, "out of memory");
                if (r)
                        runner_end(runner, job); /* refused */
                *ret_any = true;
        }
        return 0;
}

/* ---- a turn --------------------------------------------------------------------------- */

static int runner_watch(Runner *runner, uint64_t now_ns, bool any) {
        CUresult result;

        if (any || runner->streams->n_busy == 0) {
                runner->query_gap_ns = RUNNER_QUERY_FIRST_NS;
                runner->query_at_ns = now_ns + runner->query_gap_ns;
                return 0;
        }
        if (now_ns < runner->query_at_ns)
                return 0;

        result = streams_query(runner->streams);
        runner->query_gap_ns = MIN(runner->query_gap_ns * 2, RUNNER_QUERY_LAST_NS);
        runner->query_at_ns = now_ns + runner->query_gap_ns;
        return result == CUDA_SUCCESS ? 0 : FAILURE_E_FAULT;
}

int runner_turn(Runner *runner, uint64_t now_ns, bool *ret_any) {
        int r;

        r = runner_collect(runner, now_ns, ret_any);
        if (r)
                return r;

        /* Ends are told first: what is done at a drain point can take long. */
        if (runner->streams->n_busy == 0 && TAILQ_EMPTY(&runner->ended) &&
            drain_waiting(runner->drain)) {
                r = drain_run(runner->drain);
                if (r)
                        return r;
                runner->dirty = true;
                *ret_any = true;
        }

        if (runner->dirty) {
                r = runner_issue_all(runner, now_ns, ret_any);
                if (r)
                        return r;
        }
        return runner_watch(runner, now_ns, *ret_any);
}

Job *runner_next_late(Runner *runner, uint64_t now_ns) {
        Job *job;

        TAILQ_FOREACH(job, &runner->in_flight, link) {
                if (job->timeout_ms == 0 || job->late_told)
                        continue;
                if (job->started_ns == 0 && ticket_has_started(&job->ticket))
                        job->started_ns = now_ns;
                if (job->started_ns == 0 ||
                    now_ns - job->started_ns < job->timeout_ms * UINT64_C(1000000))
                        continue;
                job->late_told = true;
                return job;
        }
        return NULL;
}

bool runner_is_idle(const Runner *runner) {
        return TAILQ_EMPTY(&runner->waiting) && TAILQ_EMPTY(&runner->in_flight);
}

const char *runner_waiting(const Runner *runner) {
        const char *waiting = drain_waiting(runner->drain);
        const Job *job = TAILQ_FIRST(&runner->waiting);

        if (waiting)
                return waiting;
        if (runner->alone || (job && job->program && job->program->has_printf))
                return "a kernel that prints runs alone";
        return "";
}

Gpuq__Worker__Phase runner_phase(const Job *job) {
        if (job->state == JOB_WAITING)
                return GPUQ__WORKER__PHASE__QUEUED;
        return ticket_is_committing(&job->ticket) ? GPUQ__WORKER__PHASE__COMMITTING
                                                  : GPUQ__WORKER__PHASE__ISSUED;
}
