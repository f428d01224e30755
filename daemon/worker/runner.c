/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner
 */
#include "worker/runner.h"

#include "worker/checked.h"
#include "worker/library.h"

#define RUNNER_QUERY_FIRST_NS UINT64_C(1000000)
#define RUNNER_QUERY_LAST_NS  UINT64_C(20000000)

int runner_init(Runner *runner, Context *context, Streams *streams, Quiesce *quiesce,
                Output *output, const JobTables *tables, const RunnerSettings *settings) {
        runner->context = context;
        runner->streams = streams;
        runner->quiesce = quiesce;
        runner->output = output;
        runner->tables = *tables;
        runner->settings = *settings;
        issuer_init(&runner->issuer, context, streams, &settings->issue);
        forming_init(&runner->forming);
        TAILQ_INIT(&runner->waiting);
        TAILQ_INIT(&runner->in_flight);
        TAILQ_INIT(&runner->ended);
        TAILQ_INIT(&runner->ready);
        TAILQ_INIT(&runner->put_back);
        TAILQ_INIT(&runner->refused);
        TAILQ_INIT(&runner->batches);
        blocks_init(&runner->blocks);
        return programs_init(&runner->programs, context);
}

void runner_changed(Runner *runner) {
        runner->dirty = true;
}

static void runner_set_move(Runner *runner, const Image *image) {
        Move *move = &runner->issuer.transfer.move;
        void *params[] = {move->table.rows};

        for (unsigned i = 0; i < MOVE_SIZES; ++i) {
                CUfunction function = image_internal(image, move_symbol(i));

                if (!function) {
                        move_disable(move);
                        return;
                }
                move_set(move, i, function);
        }
        graphs_reserve(&runner->issuer.graphs, move->functions[0], params);
}

void runner_open(Runner *runner, const Image *image) {
        if (image)
                runner_set_move(runner, image);
        if (image && runner->context->library)
                library_set_builtin(runner->context->library, image);
        runner->open = true;
        runner->dirty = true;
}

void runner_forget_addresses(Runner *runner) {
        graphs_forget_addresses(&runner->issuer.graphs);
        textures_forget_addresses(&runner->issuer.textures);
}

void runner_forget_functions(Runner *runner) {
        graphs_clear(&runner->issuer.graphs);
        streams_forget_functions(runner->streams);
        programs_clear(&runner->programs);
}

/* ---- a new job ------------------------------------------------------------------------ */

Job *runner_find(const Runner *runner, uint64_t id) {
        Job *job;

        HASH_FIND(hh, runner->by_id, &id, sizeof(id), job);
        return job;
}

static void runner_make_ready(Runner *runner, Job *job) {
        TAILQ_INSERT_TAIL(&runner->ready, job, queue);
        ++runner->n_fresh;
        runner->dirty = true;
        runner->is_urgent |= stream_class(job->priority) == STREAM_HIGH;
}

/* Predecessors that have not been issued notify it when they are. */
static void runner_follow(Runner *runner, Job *job) {
        for (size_t i = 0; i < job->order.n_after; ++i) {
                Job *before = runner_find(runner, job->order.after[i]);

                if (!before || before->state != JOB_WAITING)
                        continue;
                job->order.edges[i].after = job;
                SLIST_INSERT_HEAD(&before->order.successors, &job->order.edges[i], link);
                ++job->order.n_behind;
        }
}

int runner_add(Runner *runner, const WorkerJob *message, const WorkerJobParts *parts,
               Job **ret_job) {
        Job *job;
        int r;

        r = job_new(message, parts, &runner->tables, &runner->blocks, &job);
        if (r < 0)
                return r;

        HASH_ADD(hh, runner->by_id, id, sizeof(job->id), job);
        if (!job->hh.tbl) {
                job_let_go(job);
                job_free(job, &runner->blocks);
                return -ENOMEM;
        }
        runner_follow(runner, job);
        TAILQ_INSERT_TAIL(&runner->waiting, job, link);
        if (job->order.n_behind == 0)
                runner_make_ready(runner, job);
        if (ret_job)
                *ret_job = job;
        return 0;
}

/* The job was issued or refused. */
void runner_let_go(Runner *runner, Job *job) {
        JobEdge *edge;

        while ((edge = SLIST_FIRST(&job->order.successors))) {
                SLIST_REMOVE_HEAD(&job->order.successors, link);
                if (--edge->after->order.n_behind == 0)
                        runner_make_ready(runner, edge->after);
        }
}

/* ---- the end of a job --------------------------------------------------------------- */

static bool runner_is_behind(const Runner *runner, const Job *job) {
        for (size_t i = 0; i < job->order.n_after; ++i)
                if (runner_find(runner, job->order.after[i]))
                        return true;
        return false;
}

/*
 * The job is in no batch and not in runner->ready. Successors of a refused job do not name its
 * predecessors, so it ends only after they have.
 */
void runner_end(Runner *runner, Job *job) {
        if (job->state == JOB_WAITING && runner_is_behind(runner, job)) {
                TAILQ_INSERT_TAIL(&runner->refused, job, queue);
                return;
        }
        if (job->state == JOB_WAITING) {
                TAILQ_REMOVE(&runner->waiting, job, link);
                runner_let_go(runner, job);
                job->never_ran = true;
        } else {
                TAILQ_REMOVE(&runner->in_flight, job, link);
        }
        HASH_DELETE(hh, runner->by_id, job);
        TAILQ_INSERT_TAIL(&runner->ended, job, link);
        job->state = JOB_ENDED;
        job->batch = NULL;
        job_let_go(job);
        runner->dirty = true;
}

/* Ends all jobs of a batch, whatever their result. */
void runner_end_batch(Runner *runner, Batch *batch) {
        Job *job;

        while ((job = TAILQ_FIRST(&batch->jobs))) {
                TAILQ_REMOVE(&batch->jobs, job, queue);
                fence_end(&runner->issuer.fences, job);
                runner_end(runner, job);
        }
        batch_free(batch, &runner->blocks);
}

/* The driver delivers kernels' output when the context is synchronised; this job is alone in it. */
static int runner_take_output(Runner *runner, Job *job) {
        int r;

        r = result_check(runner->context->cu, runner->context->cu->cuCtxSynchronize(),
                         GPUQ__V1__CODE__E_LAUNCH, "cuCtxSynchronize", &job->failure);
        if (r == FAILURE_E_FAULT)
                return r;
        return output_take(runner->output, &job->output);
}

static int runner_finish(Runner *runner, Batch *batch, uint64_t now_ns) {
        uint32_t stream = ticket_place(runner->streams, &batch->ticket);
        Job *job;
        int r;

        if (batch == runner->alone) {
                r = runner_take_output(runner, TAILQ_FIRST(&batch->jobs));
                if (r == FAILURE_E_FAULT)
                        return r;
                runner->alone = NULL;
        }

        r = checked_end(runner->context, TAILQ_FIRST(&batch->jobs));
        if (r)
                return r;

        issue_finish(&runner->issuer, batch, now_ns);
        TAILQ_FOREACH (job, &batch->jobs, queue) {
                job->run.ran_us =
                        now_ns > batch->issued_ns ? (now_ns - batch->issued_ns) / 1000 : 0;
                job->run.stream = stream;
        }
        TAILQ_REMOVE(&runner->batches, batch, link);
        runner_end_batch(runner, batch);
        return 0;
}

static void runner_end_refused(Runner *runner) {
        Job *job, *next;

        for (job = TAILQ_FIRST(&runner->refused); job; job = next) {
                next = TAILQ_NEXT(job, queue);
                if (runner_is_behind(runner, job))
                        continue;
                TAILQ_REMOVE(&runner->refused, job, queue);
                runner_end(runner, job);
        }
}

int runner_collect(Runner *runner, uint64_t now_ns, bool *ret_any) {
        Batch *batch, *next;
        int r;

        for (batch = TAILQ_FIRST(&runner->batches); batch; batch = next) {
                next = TAILQ_NEXT(batch, link);
                if (!ticket_is_done(&batch->ticket))
                        continue;
                r = runner_finish(runner, batch, now_ns);
                if (r)
                        return r;
                runner->has_collected = *ret_any = true;
        }
        runner_end_refused(runner);
        return 0;
}

void runner_free_ended(Runner *runner) {
        Job *job;

        while ((job = TAILQ_FIRST(&runner->ended))) {
                TAILQ_REMOVE(&runner->ended, job, link);
                job_free(job, &runner->blocks);
        }
}

/* ---- a turn --------------------------------------------------------------------------- */

/* No query is needed while ends arrive. Messages and issued jobs do not show whether work in
 * flight still proceeds. */
static int runner_watch(Runner *runner, uint64_t now_ns) {
        CUresult result;
        bool any = runner->has_collected;

        runner->has_collected = false;
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

/* Ends are reported first, because tasks at a quiesce point can take long. */
static int runner_quiesce(Runner *runner, bool *ret_any) {
        int r;

        if (runner->streams->n_busy > 0 || !TAILQ_EMPTY(&runner->ended) ||
            !quiesce_is_wanted(runner->quiesce))
                return 0;
        r = quiesce_run(runner->quiesce);
        if (r)
                return r;
        runner->dirty = true;
        *ret_any = true;
        return 0;
}

bool runner_is_quiet(const Runner *runner, uint64_t now_ns) {
        return quiet_is(&runner->quiet, now_ns) && !TAILQ_EMPTY(&runner->batches);
}

static bool runner_must_quiesce(const Runner *runner, uint64_t now_ns) {
        const Batch *oldest = TAILQ_FIRST(&runner->batches);

        return quiesce_holds(runner->quiesce, oldest ? oldest->issued_ns : 0, now_ns);
}

static bool runner_may_issue(const Runner *runner, uint64_t now_ns) {
        if (!runner->open || runner->alone || runner_must_quiesce(runner, now_ns) ||
            (runner_is_quiet(runner, now_ns) && !runner->is_urgent))
                return false;
        return runner->dirty || runner_is_holding(runner) ||
               (runner->again_ns > 0 && now_ns >= runner->again_ns);
}

int runner_turn(Runner *runner, uint64_t now_ns, bool *ret_any) {
        int r;

        r = runner_quiesce(runner, ret_any);
        if (r)
                return r;

        if (runner_may_issue(runner, now_ns)) {
                r = runner_issue_all(runner, now_ns, ret_any);
                if (r)
                        return r;
        }
        return runner_watch(runner, now_ns);
}

/* ---- questions -------------------------------------------------------------------------- */

static bool batch_has_started(const Batch *batch) {
        return batch->waits_elsewhere ? ticket_has_started(&batch->ticket)
                                      : ticket_is_next(&batch->ticket);
}

static Job *batch_next_late(const Batch *batch, uint64_t ran_ns) {
        Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (job->timeout_ms > 0 && !job->late_told &&
                    ran_ns >= job->timeout_ms * UINT64_C(1000000))
                        return job;
        return NULL;
}

Job *runner_next_late(Runner *runner, uint64_t now_ns) {
        Batch *batch;
        Job *job;

        TAILQ_FOREACH (batch, &runner->batches, link) {
                if (batch->timeout_ms == 0)
                        continue;
                if (batch->started_ns == 0 && batch_has_started(batch))
                        batch->started_ns = now_ns;
                if (batch->started_ns == 0 ||
                    now_ns - batch->started_ns < batch->timeout_ms * UINT64_C(1000000))
                        continue;
                job = batch_next_late(batch, now_ns - batch->started_ns);
                if (!job)
                        continue;
                job->late_told = true;
                return job;
        }
        return NULL;
}

bool runner_is_idle(const Runner *runner) {
        return TAILQ_EMPTY(&runner->waiting) && TAILQ_EMPTY(&runner->in_flight);
}

bool runner_is_holding(const Runner *runner) {
        return runner->forming.n_open > 0;
}

WorkerWait runner_waits_for(const Runner *runner) {
        const Job *job = TAILQ_FIRST(&runner->waiting);

        if (quiesce_is_wanted(runner->quiesce))
                return WORKER_WAITS_FOR_QUIET;
        if (!runner->open)
                return WORKER_WAITS_FOR_BUILTIN;
        if (runner->alone)
                return WORKER_WAITS_FOR_ONE;
        if (job && job->program && (job->program->has_printf || !checked_is_free(job)))
                return WORKER_WAITS_FOR_ONE;
        return WORKER_WAITS_NOT;
}

WorkerPhase runner_phase(const Job *job) {
        if (job->state == JOB_WAITING)
                return WORKER_PHASE_QUEUED;
        return job->staging.updates && ticket_is_committing(&job->batch->ticket)
                       ? WORKER_PHASE_COMMITTING
                       : WORKER_PHASE_ISSUED;
}
