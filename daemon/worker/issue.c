/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issue
 */
#include "worker/issue.h"

#include <string.h>

typedef struct IssueRange {
        uint64_t begin, end; /* bytes into an arena */
} IssueRange;

void issuer_init(Issuer *issuer, Context *context, Streams *streams) {
        *issuer = (Issuer){.context = context, .streams = streams};
        graphs_init(&issuer->graphs, context);
}

static int issue_check(const Issuer *issuer, Job *job, CUresult result, const char *what) {
        return result_check(issuer->context->cu, result, GPUQ__V1__CODE__E_LAUNCH, what,
                            &job->failure);
}

/* ---- scratch ------------------------------------------------------------------------ */

/* Only when nothing else is in flight: gives back all that the pool keeps, then tries once more. */
static int issue_scratch_alone(Issuer *issuer, Job *job, Stream *stream) {
        const Driver *cu = issuer->context->cu;
        size_t n_bytes = job->staging.n_bytes;
        CUresult result;

        cu->cuMemPoolTrimTo(issuer->context->pool, 0);
        result = cu->cuMemAllocFromPoolAsync(&job->scratch, n_bytes, issuer->context->pool,
                                             stream->stream);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                return failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY,
                                   "the device has no %zu bytes left for the job's buffers",
                                   n_bytes);
        return issue_check(issuer, job, result, "cuMemAllocFromPoolAsync");
}

static int issue_scratch(Issuer *issuer, Job *job, Stream *stream) {
        CUresult result;

        if (job->staging.n_bytes == 0)
                return 0;

        result = issuer->context->cu->cuMemAllocFromPoolAsync(
                &job->scratch, job->staging.n_bytes, issuer->context->pool, stream->stream);
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
                return issue_check(issuer, job, result, "cuMemAllocFromPoolAsync");
        if (issuer->streams->n_busy > 0)
                return FAILURE_E_WAIT;
        return issue_scratch_alone(issuer, job, stream);
}

/* ---- before the steps ----------------------------------------------------------------- */

static CUresult issue_zero(const Issuer *issuer, const Job *job, CUdeviceptr to, uint64_t length) {
        return issuer->context->cu->cuMemsetD8Async(to, 0, length, job->ticket.stream->stream);
}

/* Zeros of an out buffer in device memory, but not where the job also reads what was there. */
static CUresult issue_zero_device(const Issuer *issuer, const Job *job, const Arena *arena,
                                  IssueRange range) {
        for (size_t i = 0; i < job->n_buffers && range.begin < range.end; ++i) {
                const JobBuffer *other = &job->buffers[i];
                IssueRange kept = {other->offset, other->offset + other->length};
                CUresult result;

                if (other->arena != arena || other->direction == STAGING_OUT ||
                    kept.end <= range.begin || kept.begin >= range.end || other->length == 0)
                        continue;
                if (kept.end < range.end) {
                        result = issue_zero_device(issuer, job, arena,
                                                   (IssueRange){kept.end, range.end});
                        if (result != CUDA_SUCCESS)
                                return result;
                }
                range.end = kept.begin;
        }

        if (range.begin >= range.end)
                return CUDA_SUCCESS;
        return issue_zero(issuer, job, arena->address + range.begin, range.end - range.begin);
}

static int issue_zeros(const Issuer *issuer, Job *job) {
        int r;

        for (size_t i = 0; i < job->staging.n_zero; ++i) {
                const StagingRange *range = &job->staging.zero[i];

                r = issue_check(
                        issuer, job,
                        issue_zero(issuer, job, job->scratch + range->scratch, range->length),
                        "cuMemsetD8Async");
                if (r)
                        return r;
        }

        for (size_t i = 0; i < job->n_buffers; ++i) {
                const JobBuffer *buffer = &job->buffers[i];
                IssueRange range = {buffer->offset, buffer->offset + buffer->length};

                if (buffer->arena->place != GPUQ__V1__PLACE__DEVICE ||
                    buffer->direction != STAGING_OUT)
                        continue;
                r = issue_check(issuer, job, issue_zero_device(issuer, job, buffer->arena, range),
                                "cuMemsetD8Async");
                if (r)
                        return r;
        }
        return 0;
}

static uint8_t *range_memory(const StagingRange *range) {
        return ((const Arena *)range->arena)->memory + range->offset;
}

static int issue_copies_in(const Issuer *issuer, Job *job) {
        int r;

        for (size_t i = 0; i < job->staging.n_in; ++i) {
                const StagingRange *range = &job->staging.in[i];

                r = issue_check(issuer, job,
                                issuer->context->cu->cuMemcpyHtoDAsync(
                                        job->scratch + range->scratch, range_memory(range),
                                        range->length, job->ticket.stream->stream),
                                "cuMemcpyHtoDAsync");
                if (r)
                        return r;
        }
        return 0;
}

/* ---- the steps -------------------------------------------------------------------------- */

static CUresult issue_launch(const Driver *cu, const ProgramLaunch *launch, CUstream stream) {
        CUlaunchAttribute attributes[2];
        CUlaunchConfig config = {
                .gridDimX = launch->grid[0],
                .gridDimY = launch->grid[1],
                .gridDimZ = launch->grid[2],
                .blockDimX = launch->block[0],
                .blockDimY = launch->block[1],
                .blockDimZ = launch->block[2],
                .sharedMemBytes = launch->shared_bytes,
                .hStream = stream,
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
        return cu->cuLaunchKernelEx(&config, launch->function->function, launch->values, NULL);
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

static int issue_step(const Issuer *issuer, Job *job, const Step *step) {
        const Driver *cu = issuer->context->cu;
        CUstream stream = job->ticket.stream->stream;
        char what[128];

        switch (step->kind) {
                case STEP_COPY:
                        return issue_check(issuer, job,
                                           cu->cuMemcpyDtoDAsync(place_address(&step->copy.to),
                                                                 place_address(&step->copy.from),
                                                                 step->copy.length, stream),
                                           "copy");
                case STEP_FILL:
                        return issue_check(issuer, job, issue_fill(cu, &step->fill, stream),
                                           "fill");
                default:
                        snprintf(what, sizeof(what), "kernel %.96s", step->launch.function->name);
                        return issue_check(issuer, job, issue_launch(cu, &step->launch, stream),
                                           what);
        }
}

static int issue_singly(const Issuer *issuer, Job *job) {
        int r;

        for (size_t i = 0; i < job->program->n_steps; ++i) {
                r = issue_step(issuer, job, &job->program->steps[i]);
                if (r)
                        return r;
        }
        return 0;
}

static int issue_steps(Issuer *issuer, Job *job) {
        Failure failure = {0};
        int r;

        if (job->program->n_steps < 2)
                return issue_singly(issuer, job);

        r = graphs_take(&issuer->graphs, job->program, &job->graph, &failure);
        if (r == FAILURE_E_FAULT)
                failure_copy(&job->failure, &failure);
        failure_clear(&failure);
        if (r == FAILURE_E_FAULT)
                return r;
        /* What a graph does not take, a stream may; if not, it says which step. */
        if (r)
                return issue_singly(issuer, job);

        return issue_check(
                issuer, job,
                issuer->context->cu->cuGraphLaunch(job->graph->exec, job->ticket.stream->stream),
                "cuGraphLaunch");
}

/* ---- after the steps --------------------------------------------------------------------- */

static int issue_copies_out(const Issuer *issuer, Job *job) {
        int r;

        if (job->writes_in_place) {
                r = issue_check(issuer, job, ticket_mark_committing(issuer->streams, &job->ticket),
                                "cuStreamWriteValue32");
                if (r)
                        return r;
        }

        for (size_t i = 0; i < job->staging.n_out; ++i) {
                const StagingRange *range = &job->staging.out[i];

                r = issue_check(issuer, job,
                                issuer->context->cu->cuMemcpyDtoHAsync(
                                        range_memory(range), job->scratch + range->scratch,
                                        range->length, job->ticket.stream->stream),
                                "cuMemcpyDtoHAsync");
                if (r)
                        return r;
        }
        return 0;
}

static int issue_event(Issuer *issuer, Job *job, CUevent *event) {
        int r;

        if (!job->timed)
                return 0;

        if (issuer->n_events > 0) {
                *event = issuer->events[--issuer->n_events];
        } else {
                r = issue_check(issuer, job,
                                issuer->context->cu->cuEventCreate(event, CU_EVENT_DEFAULT),
                                "cuEventCreate");
                if (r)
                        return r;
        }
        return issue_check(issuer, job,
                           issuer->context->cu->cuEventRecord(*event, job->ticket.stream->stream),
                           "cuEventRecord");
}

static int issue_body(Issuer *issuer, Job *job) {
        int r;

        if (job->timeout_ms > 0) {
                r = issue_check(issuer, job, ticket_mark_started(issuer->streams, &job->ticket),
                                "cuStreamWriteValue32");
                if (r)
                        return r;
        }
        r = issue_event(issuer, job, &job->begin);
        if (r)
                return r;
        r = issue_zeros(issuer, job);
        if (r)
                return r;
        r = issue_copies_in(issuer, job);
        if (r)
                return r;
        r = issue_steps(issuer, job);
        if (r)
                return r;
        r = issue_copies_out(issuer, job);
        if (r)
                return r;
        return issue_event(issuer, job, &job->end);
}

/* Whatever became of the rest: the scratch goes back, and the ticket is told done. */
static int issue_tail(Issuer *issuer, Job *job) {
        const Driver *cu = issuer->context->cu;
        Failure failure = {0};
        int r = 0;

        if (job->scratch)
                r = result_check(cu, cu->cuMemFreeAsync(job->scratch, job->ticket.stream->stream),
                                 GPUQ__V1__CODE__E_FAULT, "cuMemFreeAsync", &failure);
        if (r == 0)
                r = result_check(cu, ticket_mark_done(issuer->streams, &job->ticket),
                                 GPUQ__V1__CODE__E_FAULT, "cuStreamWriteValue32", &failure);
        if (r)
                failure_copy(&job->failure, &failure);
        failure_clear(&failure);
        /* Without its word the job would never end: such a context is of no use. */
        return r ? FAILURE_E_FAULT : 0;
}

int issue_job(Issuer *issuer, Job *job, Stream *stream) {
        int r;

        r = issue_scratch(issuer, job, stream);
        if (r)
                return r;

        job_set_addresses(job);
        job->ticket = ticket_take(issuer->streams, stream);
        r = issue_body(issuer, job);
        if (r == FAILURE_E_FAULT)
                return r;
        if (r < 0)
                failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY, "out of memory");
        return issue_tail(issuer, job);
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

void issue_finish(Issuer *issuer, Job *job) {
        float milliseconds;

        if (job->begin && job->end &&
            issuer->context->cu->cuEventElapsedTime(&milliseconds, job->begin, job->end) ==
                    CUDA_SUCCESS &&
            milliseconds > 0)
                job->gpu_ns = (uint64_t)((double)milliseconds * 1e6);

        issuer_keep_event(issuer, &job->begin);
        issuer_keep_event(issuer, &job->end);
        graph_release(&issuer->graphs, job->graph);
        job->graph = NULL;
        ticket_release(issuer->streams, &job->ticket);
}
