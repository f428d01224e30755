/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfer
 *
 * In all three ways the batch's stream orders the work: every other user of the same scratch and
 * arenas comes before or after this batch.
 */
#include "worker/transfer.h"

#include <string.h>

#include "util/human.h"

/* Zeros up to this size are written by this thread, which is faster than a launch. */
#define TRANSFER_CLEAR_MAX (64u << 10)

void transfer_init(Transfer *transfer, Context *context, Streams *streams) {
        *transfer = (Transfer){.context = context, .streams = streams};
        move_init(&transfer->move, streams);
}

static int transfer_check(const Transfer *transfer, CUresult result, const char *what,
                          Failure *failure) {
        return result_check(transfer->context->cu, result, GPUQ__V1__CODE__E_LAUNCH, what, failure);
}

static CUstream batch_stream(const Batch *batch) {
        return batch->stream->stream;
}

/* ---- scratch ------------------------------------------------------------------------ */

static CUresult scratch_take(const Transfer *transfer, Batch *batch, size_t n_bytes,
                             CUdeviceptr *ret_scratch) {
        CUresult result;

        if (batch->way == BATCH_MOVED &&
            streams_may_keep(transfer->streams, batch->stream, n_bytes))
                return stream_scratch(transfer->streams, batch->stream, n_bytes, ret_scratch);

        result = transfer->context->cu->cuMemAllocFromPoolAsync(
                ret_scratch, n_bytes, transfer->context->pool, batch_stream(batch));
        if (result == CUDA_SUCCESS)
                batch->scratch = *ret_scratch;
        return result;
}

/* First the scratch that streams keep is freed; if nothing else is in flight, also all that the
 * pool keeps. */
static CUresult scratch_take_last(const Transfer *transfer, Batch *batch, size_t n_bytes,
                                  CUdeviceptr *ret_scratch) {
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

        if (streams_drop_scratch(transfer->streams))
                result = scratch_take(transfer, batch, n_bytes, ret_scratch);
        if (result != CUDA_ERROR_OUT_OF_MEMORY || transfer->streams->n_busy > 0)
                return result;
        transfer->context->cu->cuMemPoolTrimTo(transfer->context->pool, 0);
        return scratch_take(transfer, batch, n_bytes, ret_scratch);
}

static size_t scratch_size(const Batch *batch) {
        const Job *job;
        size_t n_bytes = 0;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                n_bytes += job_scratch_bytes(job);
        return n_bytes;
}

/* First the scratch of idle streams is freed. */
static bool scratch_may_be_kept(const Transfer *transfer, const Batch *batch, size_t n_bytes) {
        Streams *streams = transfer->streams;

        return batch->way != BATCH_MOVED || streams_may_keep(streams, batch->stream, n_bytes) ||
               (streams_drop_scratch(streams) && streams_may_keep(streams, batch->stream, n_bytes));
}

int transfer_scratch(Transfer *transfer, Batch *batch, Failure *failure) {
        size_t n_bytes;
        CUdeviceptr scratch;
        CUresult result;
        Job *job;

        if (batch->way != BATCH_COPIED && batch->way != BATCH_MOVED)
                return 0;

        n_bytes = scratch_size(batch);
        if (!scratch_may_be_kept(transfer, batch, n_bytes) && batch->may_wait)
                return FAILURE_E_WAIT;
        batch->may_wait = false; /* to wait would not help: no other batch holds memory */
        result = scratch_take(transfer, batch, n_bytes, &scratch);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                result = scratch_take_last(transfer, batch, n_bytes, &scratch);
        if (result == CUDA_ERROR_OUT_OF_MEMORY && transfer->streams->n_busy > 0)
                return FAILURE_E_WAIT;
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                return failure_set(
                        failure, GPUQ__V1__CODE__E_MEMORY,
                        "the device has less than %s of free memory for the job's buffers",
                        human_bytes(n_bytes).text);
        if (result != CUDA_SUCCESS)
                return transfer_check(transfer, result, "cuMemAllocFromPoolAsync", failure);

        TAILQ_FOREACH (job, &batch->jobs, queue) {
                job->scratch = scratch;
                scratch += job_scratch_bytes(job);
        }
        return 0;
}

int transfer_release(Transfer *transfer, Batch *batch, Failure *failure) {
        CUdeviceptr scratch = batch->scratch;

        batch->scratch = 0;
        if (!scratch)
                return 0;
        return transfer_check(transfer,
                              transfer->context->cu->cuMemFreeAsync(scratch, batch_stream(batch)),
                              "cuMemFreeAsync", failure);
}

static CUdeviceptr range_address(const StagingRange *range) {
        return job_arena(range->arena)->address + range->offset;
}

/* ---- zeros in device memory ------------------------------------------------------------ */

/* One job's zeros are a call of their own; those of several are rows of one launch. */
static CUresult device_clear(Transfer *transfer, const Batch *batch, CUdeviceptr to,
                             uint64_t n_bytes) {
        if (batch->n_jobs > 1 && move_is_there(&transfer->move))
                return move_add(&transfer->move, batch->stream, to, 0, n_bytes);
        return transfer->context->cu->cuMemsetD8Async(to, 0, n_bytes, batch_stream(batch));
}

static CUresult device_clear_job(Transfer *transfer, const Batch *batch, const Job *job) {
        CUresult result = CUDA_SUCCESS;

        for (size_t i = 0; i < job->staging.n_clear && result == CUDA_SUCCESS; ++i) {
                const StagingRange *range = &job->staging.clear[i];

                result = device_clear(transfer, batch, range_address(range), range->length);
        }
        return result;
}

/* ---- by copy engines -------------------------------------------------------------------- */

static uint8_t *range_memory(const StagingRange *range) {
        return job_arena(range->arena)->memory + range->offset;
}

static int copy_in(const Transfer *transfer, const Batch *batch, const Job *job, Failure *failure) {
        const Driver *cu = transfer->context->cu;
        int r;

        for (size_t i = 0; i < job->staging.n_zero; ++i) {
                const StagingRange *range = &job->staging.zero[i];

                r = transfer_check(transfer,
                                   cu->cuMemsetD8Async(job->scratch + range->scratch, 0,
                                                       range->length, batch_stream(batch)),
                                   "cuMemsetD8Async", failure);
                if (r)
                        return r;
        }
        for (size_t i = 0; i < job->staging.n_in; ++i) {
                const StagingRange *range = &job->staging.in[i];

                r = transfer_check(transfer,
                                   cu->cuMemcpyHtoDAsync(job->scratch + range->scratch,
                                                         range_memory(range), range->length,
                                                         batch_stream(batch)),
                                   "cuMemcpyHtoDAsync", failure);
                if (r)
                        return r;
        }
        return 0;
}

static int copy_out(const Transfer *transfer, const Batch *batch, const Job *job,
                    Failure *failure) {
        int r;

        for (size_t i = 0; i < job->staging.n_out; ++i) {
                const StagingRange *range = &job->staging.out[i];

                r = transfer_check(transfer,
                                   transfer->context->cu->cuMemcpyDtoHAsync(
                                           range_memory(range), job->scratch + range->scratch,
                                           range->length, batch_stream(batch)),
                                   "cuMemcpyDtoHAsync", failure);
                if (r)
                        return r;
        }
        return 0;
}

/* ---- by the move kernel --------------------------------------------------------------------- */

static CUresult move_in(Transfer *transfer, const Batch *batch, const Job *job) {
        CUresult result = CUDA_SUCCESS;

        for (size_t i = 0; i < job->staging.n_zero && result == CUDA_SUCCESS; ++i) {
                const StagingRange *range = &job->staging.zero[i];

                result = move_add(&transfer->move, batch->stream, job->scratch + range->scratch, 0,
                                  range->length);
        }
        for (size_t i = 0; i < job->staging.n_in && result == CUDA_SUCCESS; ++i) {
                const StagingRange *range = &job->staging.in[i];

                result = move_add(&transfer->move, batch->stream, job->scratch + range->scratch,
                                  range_address(range), range->length);
        }
        return result;
}

static CUresult move_out(Transfer *transfer, const Batch *batch, const Job *job) {
        CUresult result = CUDA_SUCCESS;

        for (size_t i = 0; i < job->staging.n_out && result == CUDA_SUCCESS; ++i) {
                const StagingRange *range = &job->staging.out[i];

                result = move_add(&transfer->move, batch->stream, range_address(range),
                                  job->scratch + range->scratch, range->length);
        }
        return result;
}

/* ---- in place ---------------------------------------------------------------------------------- */

static CUresult clear_range(Transfer *transfer, const Batch *batch, const StagingRange *range) {
        if (move_is_there(&transfer->move))
                return move_add(&transfer->move, batch->stream, range_address(range), 0,
                                range->length);
        return transfer->context->cu->cuMemsetD8Async(range_address(range), 0, range->length,
                                                      batch_stream(batch));
}

static CUresult clear_on_stream(Transfer *transfer, const Batch *batch, const Job *job) {
        CUresult result = CUDA_SUCCESS;

        for (size_t i = 0; i < job->staging.n_zero && result == CUDA_SUCCESS; ++i)
                if (!job->staging.zero[i].whole)
                        result = clear_range(transfer, batch, &job->staging.zero[i]);
        return result;
}

/* Of a lone small job without predecessors in flight: no other work uses its slices. */
static bool may_clear_here(const Batch *batch, const Job *job) {
        uint64_t n_bytes = 0;

        for (size_t i = 0; i < job->staging.n_zero; ++i)
                if (!job->staging.zero[i].whole)
                        n_bytes += job->staging.zero[i].length;
        return batch->n_jobs == 1 && !batch->is_behind && n_bytes <= TRANSFER_CLEAR_MAX;
}

static CUresult clear_in_place(Transfer *transfer, const Batch *batch, const Job *job) {
        if (!may_clear_here(batch, job))
                return clear_on_stream(transfer, batch, job);

        for (size_t i = 0; i < job->staging.n_zero; ++i)
                if (!job->staging.zero[i].whole)
                        memset(range_memory(&job->staging.zero[i]), 0, job->staging.zero[i].length);
        return CUDA_SUCCESS;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static CUresult transfer_in_job(Transfer *transfer, const Batch *batch, const Job *job) {
        CUresult result = device_clear_job(transfer, batch, job);

        if (result != CUDA_SUCCESS)
                return result;
        if (batch->way == BATCH_MOVED)
                return move_in(transfer, batch, job);
        if (batch->way == BATCH_IN_PLACE)
                return clear_in_place(transfer, batch, job);
        return CUDA_SUCCESS;
}

static CUresult transfer_in_jobs(Transfer *transfer, const Batch *batch) {
        CUresult result = CUDA_SUCCESS;
        const Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (result == CUDA_SUCCESS)
                        result = transfer_in_job(transfer, batch, job);
        return result == CUDA_SUCCESS ? move_launch(&transfer->move, batch->stream) : result;
}

static CUresult transfer_out_jobs(Transfer *transfer, const Batch *batch) {
        CUresult result = CUDA_SUCCESS;
        const Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (result == CUDA_SUCCESS)
                        result = move_out(transfer, batch, job);
        return result == CUDA_SUCCESS ? move_launch(&transfer->move, batch->stream) : result;
}

/*
 * Whether the move kernel failed; then it is disabled. Copy engines do the same, from and to the
 * same scratch, and may repeat what it did.
 */
static bool transfer_falls_back(const Transfer *transfer, Batch *batch, bool had_move,
                                CUresult result) {
        if (result == CUDA_SUCCESS || result_is_sticky(result) || !had_move ||
            move_is_there(&transfer->move))
                return false;
        if (batch->way == BATCH_MOVED)
                batch->way = BATCH_COPIED;
        return true;
}

static int transfer_copy(const Transfer *transfer, const Batch *batch,
                         int (*copy)(const Transfer *, const Batch *, const Job *, Failure *),
                         Failure *failure) {
        const Job *job;
        int r;

        TAILQ_FOREACH (job, &batch->jobs, queue) {
                r = copy(transfer, batch, job, failure);
                if (r)
                        return r;
        }
        return 0;
}

int transfer_in(Transfer *transfer, Batch *batch, Failure *failure) {
        bool had_move = move_is_there(&transfer->move);
        CUresult result = transfer_in_jobs(transfer, batch);

        if (transfer_falls_back(transfer, batch, had_move, result))
                result = transfer_in_jobs(transfer, batch);
        if (result != CUDA_SUCCESS) {
                move_forget(&transfer->move);
                return transfer_check(transfer, result, "copying the job's data", failure);
        }

        if (batch->way != BATCH_COPIED)
                return 0;
        return transfer_copy(transfer, batch, copy_in, failure);
}

int transfer_out(Transfer *transfer, Batch *batch, Failure *failure) {
        bool had_move = move_is_there(&transfer->move);
        CUresult result = CUDA_SUCCESS;

        if (batch->way == BATCH_MOVED)
                result = transfer_out_jobs(transfer, batch);
        if (result != CUDA_SUCCESS && !transfer_falls_back(transfer, batch, had_move, result))
                return transfer_check(transfer, result, "copying the job's data", failure);

        if (batch->way != BATCH_COPIED)
                return 0;
        return transfer_copy(transfer, batch, copy_out, failure);
}
