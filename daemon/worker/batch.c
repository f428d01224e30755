/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch
 */
#include "worker/batch.h"

#include <string.h>

Batch *batch_new(Blocks *blocks, Job *job, Stream *stream, uint64_t now_ns) {
        Batch *batch = blocks_take(blocks, sizeof(*batch));

        if (!batch)
                return NULL;

        if (job->formed_ns == 0)
                job->formed_ns = now_ns;
        *batch = (Batch){
                .kind = job->kind,
                .n_rows = job->n_rows,
                .stream = stream,
                .is_behind = stream != NULL,
                .formed_ns = job->formed_ns,
        };
        TAILQ_INIT(&batch->jobs);
        batch_add(batch, job);
        return batch;
}

Batch *batch_free(Batch *batch, Blocks *blocks) {
        blocks_give(blocks, batch);
        return NULL;
}

static bool kind_is(const JobKind *a, const JobKind *b) {
        return a->function && a->function == b->function && a->class == b->class &&
               a->shared_bytes == b->shared_bytes &&
               memcmp(a->grid, b->grid, sizeof(a->grid)) == 0 &&
               memcmp(a->block, b->block, sizeof(a->block)) == 0;
}

bool batch_is_full(const Batch *batch) {
        return !batch->kind.function || batch->n_jobs >= batch->n_rows ||
               batch->n_small >= BATCH_BYTES_MAX;
}

bool batch_takes(const Batch *batch, const Job *job, const Stream *stream) {
        return !batch_is_full(batch) && kind_is(&batch->kind, &job->kind) &&
               batch->stream == stream && batch->n_small + job->n_small <= BATCH_BYTES_MAX;
}

void batch_add(Batch *batch, Job *job) {
        TAILQ_INSERT_TAIL(&batch->jobs, job, queue);
        ++batch->n_jobs;
        batch->n_small += job->n_small;
        if (job->timeout_ms > 0 && (batch->timeout_ms == 0 || job->timeout_ms < batch->timeout_ms))
                batch->timeout_ms = job->timeout_ms;
}

Batch *batch_split(Batch *batch, Blocks *blocks) {
        Job *first = TAILQ_FIRST(&batch->jobs), *job = TAILQ_NEXT(first, queue);
        Batch *rest;

        TAILQ_REMOVE(&batch->jobs, job, queue);
        rest = batch_new(blocks, job, batch->is_behind ? batch->stream : NULL, batch->formed_ns);
        if (!rest) {
                TAILQ_INSERT_AFTER(&batch->jobs, first, job, queue);
                return NULL;
        }
        while ((job = TAILQ_NEXT(first, queue))) {
                TAILQ_REMOVE(&batch->jobs, job, queue);
                batch_add(rest, job);
        }

        TAILQ_INIT(&batch->jobs);
        batch->n_jobs = 0;
        batch->n_small = 0;
        batch->timeout_ms = 0;
        batch_add(batch, first);
        return rest;
}

/* ---- forming -------------------------------------------------------------------------- */

void forming_init(Forming *forming) {
        TAILQ_INIT(&forming->open);
        forming->n_open = 0;
}

Batch *forming_find(const Forming *forming, const Job *job, const Stream *stream) {
        Batch *batch;

        if (!job->kind.function)
                return NULL;
        TAILQ_FOREACH (batch, &forming->open, link)
                if (batch_takes(batch, job, stream))
                        return batch;
        return NULL;
}

Batch *forming_open(Forming *forming, Batch *batch) {
        Batch *oldest = NULL;

        if (forming->n_open == FORMING_MAX) {
                oldest = TAILQ_FIRST(&forming->open);
                forming_close(forming, oldest);
        }
        TAILQ_INSERT_TAIL(&forming->open, batch, link);
        ++forming->n_open;
        return oldest;
}

void forming_close(Forming *forming, Batch *batch) {
        TAILQ_REMOVE(&forming->open, batch, link);
        --forming->n_open;
}
