/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_device.h"

#include <string.h>

static FakeDevice *device; /* the one that there is */

/* ---- its driver ------------------------------------------------------------------ */

static CUresult fake_event_record(CUevent event, CUstream stream) {
        return CUDA_SUCCESS;
}

static CUresult fake_wait_event(CUstream stream, CUevent event, unsigned flags) {
        return CUDA_SUCCESS;
}

static CUresult fake_query(CUstream stream) {
        return CUDA_ERROR_NOT_READY;
}

static CUresult fake_synchronize(void) {
        return CUDA_SUCCESS;
}

static Driver fake_driver = {
        .cuEventRecord = fake_event_record,
        .cuStreamWaitEvent = fake_wait_event,
        .cuStreamQuery = fake_query,
        .cuCtxSynchronize = fake_synchronize,
};

void fake_device_init(FakeDevice *ours, void (*on_issue)(const Job *),
                      void (*on_done)(const Job *)) {
        static StreamWords words[_STREAM_CLASS_N][STREAMS_MAX];

        memset(words, 0, sizeof(words));
        *ours = (FakeDevice){
                .context.cu = &fake_driver,
                .streams.words = words[0],
                .on_issue = on_issue,
                .on_done = on_done,
        };
        ours->streams.context = &ours->context;
        for (unsigned class = 0; class < _STREAM_CLASS_N; ++class)
                for (unsigned i = 0; i < STREAMS_MAX; ++i) {
                        ours->streams.streams[class][i].words = &words[class][i];
                        ours->streams.streams[class][i].class = class;
                }
        device = ours;
}

/* ---- what it does ------------------------------------------------------------------ */

static void device_end_before(const Runner *runner, const Batch *batch) {
        const Batch *other;
        const Job *job, *before;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                for (size_t i = 0; i < job->order.n_after; ++i) {
                        before = runner_find(runner, job->order.after[i]);
                        if (before && before->state == JOB_IN_FLIGHT && before->batch != batch)
                                fake_device_end(runner, before->batch);
                }
        TAILQ_FOREACH (other, &runner->batches, link) {
                if (other == batch)
                        return;
                if (other->stream == batch->stream)
                        fake_device_end(runner, other);
        }
}

void fake_device_end(const Runner *runner, const Batch *batch) {
        const Job *job;

        if (ticket_is_done(&batch->ticket))
                return;
        device_end_before(runner, batch);
        TAILQ_FOREACH (job, &batch->jobs, queue)
                device->on_done(job);
        batch->stream->words->done = batch->ticket.number;
}

void fake_device_end_all(const Runner *runner) {
        const Batch *batch;

        TAILQ_FOREACH (batch, &runner->batches, link)
                fake_device_end(runner, batch);
}

/* ---- in the place of the worker's functions ------------------------------------------ */

int __wrap_job_check(Job *job, Programs *programs);
int __wrap_job_check(Job *job, Programs *programs) {
        static Program plain = {.n_refs = 1}, printing = {.n_refs = 1, .has_printf = true};
        static Function function;

        for (size_t i = 0; i < job->n_buffers; ++i)
                if (job_arena(job->buffers[i].arena)->state == ARENA_FAILED)
                        failure_set(&job->failure, GPUQ__V1__CODE__E_MEMORY, "the arena failed");
        if (failure_is_set(&job->failure))
                return FAILURE_E_SET;
        if (job->operations[0] & MANNER_REFUSED)
                return failure_set(&job->failure, GPUQ__V1__CODE__E_INVALID, "refused");

        job->program = program_ref(job->operations[0] & MANNER_PRINTS ? &printing : &plain);
        job->kind.class = stream_class(job->priority);
        if (job->operations[0] & MANNER_JOINS && !job->program->has_printf) {
                job->kind.function = &function;
                job->n_rows = 4;
        }
        return 0;
}

bool __wrap_issuer_may_batch(const Issuer *issuer);
bool __wrap_issuer_may_batch(const Issuer *issuer) {
        return true;
}

void __wrap_issue_choose(const Issuer *issuer, Batch *batch, InPlaceBeside beside, uint64_t now_ns);
void __wrap_issue_choose(const Issuer *issuer, Batch *batch, InPlaceBeside beside,
                         uint64_t now_ns) {
        batch->issued_ns = now_ns;
}

static void device_refuse(const Batch *batch) {
        Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                failure_set(&job->failure, GPUQ__V1__CODE__E_LAUNCH, "refused by the device");
}

int __wrap_issue_batch(const Issuer *issuer, Batch *batch);
int __wrap_issue_batch(const Issuer *issuer, Batch *batch) {
        Trouble trouble = device->trouble;
        const Job *job;

        device->trouble = TROUBLE_NONE;
        if (trouble == TROUBLE_REFUSED) {
                device_refuse(batch);
                return FAILURE_E_SET;
        }
        if (trouble == TROUBLE_WAIT && device->streams.n_busy > 0)
                return FAILURE_E_WAIT;
        batch->ticket = ticket_take(&device->streams, batch->stream);
        TAILQ_FOREACH (job, &batch->jobs, queue)
                device->on_issue(job);
        return trouble == TROUBLE_FAULT ? FAILURE_E_FAULT : 0;
}

void __wrap_issue_finish(const Issuer *issuer, Batch *batch, uint64_t now_ns);
void __wrap_issue_finish(const Issuer *issuer, Batch *batch, uint64_t now_ns) {
        Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (job->operations[0] & MANNER_FAILS)
                        failure_set(&job->failure, GPUQ__V1__CODE__E_LAUNCH, "failed");
        ticket_release(&device->streams, &batch->ticket);
}

int __wrap_output_take(const Output *output, char **ret_text);
int __wrap_output_take(const Output *output, char **ret_text) {
        *ret_text = strdup("printed");
        return *ret_text ? 0 : -ENOMEM;
}
