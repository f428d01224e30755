/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issue
 */
#include "worker/issue.h"

#include <assert.h>
#include <stdio.h>
#include <uv.h>

#include "worker/checked.h"
#include "worker/library.h"

void issuer_init(Issuer *issuer, Context *context, Streams *streams,
                 const IssueSettings *settings) {
        issuer->context = context;
        issuer->streams = streams;
        issuer->settings = *settings;
        graphs_init(&issuer->graphs, context);
        textures_init(&issuer->textures, context);
        transfer_init(&issuer->transfer, context, streams);
        fences_init(&issuer->fences, context);
}

bool issuer_may_batch(const Issuer *issuer) {
        return issuer->settings.coalesce && move_is_there(&issuer->transfer.move);
}

static int issue_check(const Issuer *issuer, CUresult result, const char *what, Failure *failure) {
        return result_check(issuer->context->cu, result, GPUQ__V1__CODE__E_LAUNCH, what, failure);
}

/* ---- the way ----------------------------------------------------------------------- */

static bool batch_has_scratch(const Batch *batch) {
        const Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (job_scratch_bytes(job) > 0)
                        return true;
        return false;
}

/* Large workspaces come from the pool, with shadows: what streams keep is for many small jobs. */
static bool batch_has_large_workspace(const Batch *batch) {
        const Job *first = TAILQ_FIRST(&batch->jobs);

        return first->program->n_workspace + first->checked.n_shadow > JOB_SMALL_BYTES;
}

static bool batch_may_be_in_place(const Batch *batch) {
        const Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (!job->may_be_in_place)
                        return false;
        return true;
}

/* The results for the kernel of all its jobs; NULL: out of memory to record any. */
static InPlace *batch_in_place(const Batch *batch) {
        const Job *job = TAILQ_FIRST(&batch->jobs);
        Function *function = program_only_launch(job->program)->function;

        if (!function->in_place)
                function->in_place = calloc(1, sizeof(*function->in_place));
        return function->in_place;
}

void issue_choose(const Issuer *issuer, Batch *batch, InPlaceBeside beside, uint64_t now_ns) {
        batch->issued_ns = now_ns;
        if (!batch_has_scratch(batch)) {
                batch->way = BATCH_NO_DATA;
                return;
        }
        if (batch->n_small > BATCH_BYTES_MAX || batch_has_large_workspace(batch) ||
            !move_is_there(&issuer->transfer.move)) {
                batch->way = BATCH_COPIED;
                return;
        }

        batch->way = BATCH_MOVED;
        if (!issuer->settings.in_place || !batch_may_be_in_place(batch))
                return;
        batch->in_place = batch_in_place(batch);
        if (!batch->in_place)
                return;

        /* The turn began before other batches were issued; this batch's time must not include
         * theirs. */
        batch->issued_ns = uv_hrtime();
        batch->choice = in_place_choose(batch->in_place, batch->n_small, batch->n_jobs, beside,
                                        batch->issued_ns);
        if (batch->choice.in_place)
                batch->way = BATCH_IN_PLACE;
}

/* ---- the steps of one job -------------------------------------------------------------- */

/* Dynamic shared memory that a kernel gets without asking; entries for one range are asked for no more. */
#define ONE_RANGE_SHARED_MAX (48u << 10)

/* The kernel, or its entry for one range if the fence has one. */
static CUfunction issue_function(const Program *program, const ProgramLaunch *launch) {
        const Function *function = launch->function;
        uint64_t n_threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

        if (!function->one_range || program->fence.ranges[1].n_bytes > 0 || launch->cooperative ||
            launch->cluster[0] || n_threads > function->one_range_max_threads ||
            function->static_shared + launch->shared_bytes > ONE_RANGE_SHARED_MAX)
                return function->function;
        return function->one_range;
}

static CUresult issue_launch(const Issuer *issuer, const Program *program,
                             const ProgramLaunch *launch, Stream *stream) {
        CUlaunchAttribute attributes[2];
        CUlaunchConfig config = {
                .gridDimX = launch->grid[0],
                .gridDimY = launch->grid[1],
                .gridDimZ = launch->grid[2],
                .blockDimX = launch->block[0],
                .blockDimY = launch->block[1],
                .blockDimZ = launch->block[2],
                .sharedMemBytes = launch->shared_bytes,
                .attrs = attributes,
        };

        if (launch->cooperative)
                attributes[config.numAttrs++] = (CUlaunchAttribute){
                        .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                        .value.cooperative = 1,
                };
        if (launch->cluster[0])
                attributes[config.numAttrs++] = (CUlaunchAttribute){
                        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                        .value.clusterDim = {launch->cluster[0], launch->cluster[1],
                                             launch->cluster[2]},
                };
        /* A graph's node whose first kernel launches none cannot be patched for one that does. */
        if (launch->function->may_launch) {
                config.hStream = stream->stream;
                return issuer->streams->context->cu->cuLaunchKernelEx(
                        &config, launch->function->function, launch->values, NULL);
        }
        return stream_launch(issuer->streams, stream, &config, issue_function(program, launch),
                             launch->values);
}

static CUresult issue_fill(const Driver *cu, const ProgramFill *fill, CUstream stream) {
        CUdeviceptr to = place_address(&fill->to);

        switch (fill->width) {
                case 1:
                        return cu->cuMemsetD8Async(to, (unsigned char)fill->value, fill->n, stream);
                case 2:
                        return cu->cuMemsetD16Async(to, (unsigned short)fill->value, fill->n,
                                                    stream);
                default:
                        return cu->cuMemsetD32Async(to, fill->value, fill->n, stream);
        }
}

static CUresult issue_gemm(const Context *context, const Program *program, const ProgramGemm *step,
                           CUstream stream) {
        const GemmPlaces places = program_gemm_places(program, step);

        return library_gemm(context->library, &step->gemm, &places, stream);
}

static CUresult issue_fft(const Context *context, const Program *program, const ProgramFft *step,
                          CUstream stream) {
        const FftPlaces places = {
                .from = place_address(&step->from),
                .to = place_address(&step->to),
                .workspace = program->workspace,
        };

        return library_fft(context->library, &step->fft, &places, stream);
}

static int issue_step(const Issuer *issuer, const Program *program, const Step *step,
                      Stream *stream, Failure *failure) {
        const Driver *cu = issuer->context->cu;
        CUresult result;
        char what[128];

        switch (step->kind) {
                case STEP_COPY:
                        return issue_check(issuer,
                                           cu->cuMemcpyDtoDAsync(place_address(&step->copy.to),
                                                                 place_address(&step->copy.from),
                                                                 step->copy.length, stream->stream),
                                           "copy", failure);
                case STEP_FILL:
                        return issue_check(issuer, issue_fill(cu, &step->fill, stream->stream),
                                           "fill", failure);
                case STEP_GEMM:
                        result = issue_gemm(issuer->context, program, &step->gemm, stream->stream);
                        return issue_check(issuer, result, "gemm", failure);
                case STEP_FFT:
                        result = issue_fft(issuer->context, program, &step->fft, stream->stream);
                        return issue_check(issuer, result, "fft", failure);
                default:
                        result = issue_launch(issuer, program, &step->launch, stream);
                        if (result == CUDA_SUCCESS)
                                return 0;
                        snprintf(what, sizeof(what), "kernel %.96s", step->launch.function->name);
                        return issue_check(issuer, result, what, failure);
        }
}

static int issue_singly(const Issuer *issuer, const Batch *batch, const Program *program,
                        Failure *failure) {
        int r;

        for (size_t i = 0; i < program->n_steps; ++i) {
                r = issue_step(issuer, program, &program->steps[i], batch->stream, failure);
                if (r)
                        return r;
        }
        return 0;
}

/* Each step alone: what a launch may access is written before it. */
static int issue_checked(const Issuer *issuer, const Batch *batch, Job *job, Failure *failure) {
        CUstream stream = batch->stream->stream;
        int r;

        r = checked_begin(issuer->context, job, stream, failure);
        for (size_t i = 0; i < job->program->n_steps && r == 0; ++i) {
                r = checked_tell(issuer->context, job, i, stream, failure);
                if (r == 0)
                        r = issue_step(issuer, job->program, &job->program->steps[i], batch->stream,
                                       failure);
        }
        return r;
}

/* The objects are the batch's until it ends, in whatever way. */
static int issue_textures(Issuer *issuer, Batch *batch, Program *program, Failure *failure) {
        int r;

        if (program->n_textures == 0)
                return 0;
        batch->textures = calloc(program->n_textures, sizeof(Texture *));
        if (!batch->textures)
                return -ENOMEM;
        for (size_t i = 0; i < program->n_textures; ++i) {
                ProgramTexture *texture = &program->textures[i];

                r = textures_take(&issuer->textures, &texture->shape,
                                  program->addresses[texture->buffer],
                                  &batch->textures[batch->n_textures], failure);
                if (r)
                        return r;
                texture->object = batch->textures[batch->n_textures++]->object;
        }
        return 0;
}

static void issue_release_textures(Issuer *issuer, Batch *batch) {
        for (size_t i = 0; i < batch->n_textures; ++i)
                textures_release(&issuer->textures, batch->textures[i]);
        free(batch->textures);
        batch->textures = NULL;
        batch->n_textures = 0;
}

static int issue_job(Issuer *issuer, Batch *batch, Job *job, Failure *failure) {
        int r;

        job_set_addresses(job, batch->way == BATCH_IN_PLACE);
        r = fence_set(&issuer->fences, job, failure);
        if (r)
                return r;
        r = issue_textures(issuer, batch, job->program, failure);
        if (r)
                return r;
        if (job->program->is_wide)
                job->program->wide = stream_wide(issuer->streams, batch->stream);
        if (job->program->is_checked)
                return issue_checked(issuer, batch, job, failure);
        if (job->program->n_steps < 2 || issuer->context->is_green ||
            job->program->has_new_library || job->program->has_fft)
                return issue_singly(issuer, batch, job->program, failure);

        r = graphs_take(&issuer->graphs, job->program, batch->stream, &batch->graph, failure);
        if (r == FAILURE_E_FAULT)
                return r;
        /* A stream may accept what a graph does not; if not, its error names the step. */
        if (r) {
                failure_clear(failure);
                return issue_singly(issuer, batch, job->program, failure);
        }

        return issue_check(
                issuer,
                issuer->context->cu->cuGraphLaunch(batch->graph->exec, batch->stream->stream),
                "cuGraphLaunch", failure);
}

/* ---- the launch of several jobs --------------------------------------------------------- */

static int issue_twin(Issuer *issuer, const Batch *batch, CUresult *ret_result, Failure *failure) {
        const ProgramLaunch *launch = NULL;
        Job *job;
        CUresult result;
        int r;

        assert(batch->kind.function->twin);
        issuer->table.n_rows = 0;
        TAILQ_FOREACH (job, &batch->jobs, queue) {
                job_set_addresses(job, batch->way == BATCH_IN_PLACE);
                r = fence_set(&issuer->fences, job, failure);
                if (r)
                        return r;
                launch = program_only_launch(job->program);
                twin_add(&issuer->table, launch);
        }

        result = twin_launch(&issuer->table, launch, issuer->streams, batch->stream);
        if (result == CUDA_SUCCESS) {
                ++issuer->counters.n_batches;
                issuer->counters.n_coalesced += batch->n_jobs;
        }
        *ret_result = result;
        return 0;
}

static int issue_jobs(Issuer *issuer, Batch *batch, Failure *failure) {
        Function *function = batch->kind.function;
        Job *job;
        CUresult result;
        int r = 0;

        /* The context may have failed since the batch was formed. */
        if (function->twin) {
                r = issue_twin(issuer, batch, &result, failure);
                if (r)
                        return r;
                if (result == CUDA_SUCCESS || result_is_sticky(result))
                        return issue_check(issuer, result, "a twin", failure);
        }

        /* The twin is not used again; the kernel itself is unchanged. */
        function->twin = NULL;
        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (r == 0)
                        r = issue_job(issuer, batch, job, failure);
        return r;
}

static int issue_kernels(Issuer *issuer, Batch *batch, Failure *failure) {
        if (batch->n_jobs > 1)
                return issue_jobs(issuer, batch, failure);
        return issue_job(issuer, batch, TAILQ_FIRST(&batch->jobs), failure);
}

/* ---- around them ------------------------------------------------------------------------- */

static int issue_event(Issuer *issuer, const Batch *batch, CUevent *event, Failure *failure) {
        const Driver *cu = issuer->context->cu;
        int r;

        if (!TAILQ_FIRST(&batch->jobs)->timed && !batch->choice.trial)
                return 0;

        if (issuer->n_events > 0) {
                *event = issuer->events[--issuer->n_events];
        } else {
                r = issue_check(issuer, cu->cuEventCreate(event, CU_EVENT_DEFAULT), "cuEventCreate",
                                failure);
                if (r)
                        return r;
        }
        return issue_check(issuer, cu->cuEventRecord(*event, batch->stream->stream),
                           "cuEventRecord", failure);
}

/* Only if its start does not follow from the end of earlier work on its stream. */
static int issue_start_word(const Issuer *issuer, const Batch *batch, Failure *failure) {
        if (batch->timeout_ms == 0 || !batch->waits_elsewhere)
                return 0;
        return issue_check(issuer, ticket_mark_started(issuer->streams, &batch->ticket),
                           "cuStreamWriteValue32", failure);
}

/* Otherwise it might write what earlier jobs read, after those were reported as unfinished. */
static int issue_gate(const Issuer *issuer, const Batch *batch, Failure *failure) {
        if (!batch->is_behind)
                return 0;
        return issue_check(issuer, ticket_pass_gate(issuer->streams, &batch->ticket),
                           "cuStreamWaitValue32", failure);
}

/* Only if the job could not run again after it is stopped half way. */
static int issue_commit_word(const Issuer *issuer, const Batch *batch, Failure *failure) {
        const Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (job->staging.updates)
                        return issue_check(issuer,
                                           ticket_mark_committing(issuer->streams, &batch->ticket),
                                           "cuStreamWriteValue32", failure);
        return 0;
}

static int issue_body(Issuer *issuer, Batch *batch, Failure *failure) {
        int r;

        r = issue_gate(issuer, batch, failure);
        if (r)
                return r;
        r = issue_start_word(issuer, batch, failure);
        if (r)
                return r;
        r = issue_event(issuer, batch, &batch->begin, failure);
        if (r)
                return r;
        r = transfer_in(&issuer->transfer, batch, failure);
        if (r)
                return r;
        r = issue_kernels(issuer, batch, failure);
        if (r)
                return r;
        r = issue_commit_word(issuer, batch, failure);
        if (r)
                return r;
        r = transfer_out(&issuer->transfer, batch, failure);
        if (r)
                return r;
        return issue_event(issuer, batch, &batch->end, failure);
}

/* Even if a step failed, the scratch is freed and the ticket is marked as done. */
static int issue_tail(Issuer *issuer, Batch *batch, Failure *failure) {
        Failure own = {0};
        int r;

        r = transfer_release(&issuer->transfer, batch, &own);
        if (r == 0)
                r = issue_check(issuer, ticket_mark_done(issuer->streams, &batch->ticket),
                                "cuStreamWriteValue32", &own);
        if (r)
                failure_copy(failure, &own);
        failure_clear(&own);
        /* Without its word the batch would never end, so the context counts as unusable. */
        return r ? FAILURE_E_FAULT : 0;
}

static int issue_whole(Issuer *issuer, Batch *batch, Failure *failure) {
        int r;

        r = transfer_scratch(&issuer->transfer, batch, failure);
        if (r)
                return r;

        batch->ticket = ticket_take(issuer->streams, batch->stream);
        r = issue_body(issuer, batch, failure);
        issuer->counters.n_by_way[batch->way] += batch->n_jobs; /* as it went in the end */
        if (r == FAILURE_E_FAULT)
                return r;
        if (r < 0)
                failure_set(failure, GPUQ__V1__CODE__E_MEMORY, "the worker is out of memory");
        return issue_tail(issuer, batch, failure);
}

int issue_batch(Issuer *issuer, Batch *batch) {
        Failure failure = {0};
        Job *job;
        int r;

        r = issue_whole(issuer, batch, &failure);
        if (failure_is_set(&failure))
                TAILQ_FOREACH (job, &batch->jobs, queue)
                        failure_copy(&job->failure, &failure);
        if ((r || failure_is_set(&failure)) && batch->in_place) {
                in_place_forget(batch->in_place, &batch->choice);
                batch->in_place = NULL;
        }
        failure_clear(&failure);
        return r;
}

/* ---- the end ---------------------------------------------------------------------------- */

static void issuer_keep_event(Issuer *issuer, CUevent *event) {
        if (!*event)
                return;
        if (issuer->n_events < ISSUE_EVENTS_MAX)
                issuer->events[issuer->n_events++] = *event;
        else
                issuer->context->cu->cuEventDestroy(*event);
        *event = NULL;
}

/* Return: 0: it was not measured. */
static uint64_t issue_read_events(Issuer *issuer, Batch *batch) {
        float milliseconds = 0;

        if (batch->begin && batch->end &&
            issuer->context->cu->cuEventElapsedTime(&milliseconds, batch->begin, batch->end) !=
                    CUDA_SUCCESS)
                milliseconds = 0;

        issuer_keep_event(issuer, &batch->begin);
        issuer_keep_event(issuer, &batch->end);
        return milliseconds > 0 ? (uint64_t)((double)milliseconds * 1e6) : 0;
}

void issue_finish(Issuer *issuer, Batch *batch, uint64_t now_ns) {
        Job *first = TAILQ_FIRST(&batch->jobs);
        uint64_t gpu_ns = issue_read_events(issuer, batch);

        if (first->timed)
                first->run.gpu_ns = gpu_ns;
        if (batch->in_place && gpu_ns > 0)
                in_place_told(batch->in_place, &batch->choice, batch->n_small, batch->n_jobs,
                              gpu_ns, now_ns);
        else if (batch->in_place)
                in_place_forget(batch->in_place, &batch->choice);
        graph_release(batch->graph);
        batch->graph = NULL;
        issue_release_textures(issuer, batch);
        ticket_release(issuer->streams, &batch->ticket);
}
