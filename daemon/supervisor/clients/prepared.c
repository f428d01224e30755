/* SPDX-License-Identifier: Apache-2.0 */
#include "prepared.h"

#include <string.h>

/* ---- life ------------------------------------------------------------------ */

static Failure *prepared_check(const Gpuq__V1__Job *job) {
        if (job->n_buffers > PREPARED_BUFFERS_MAX || job->n_kernels > PREPARED_KERNELS_MAX ||
            job->operations.len > PREPARED_OPERATIONS_MAX)
                return failure_new(
                        FAILURE_INVALID,
                        "a prepared job has at most %u buffers, %u kernels and %u bytes of "
                        "operations",
                        PREPARED_BUFFERS_MAX, PREPARED_KERNELS_MAX, PREPARED_OPERATIONS_MAX);
        if (job->n_after || job->word_arena || job->tag)
                return failure_new(
                        FAILURE_INVALID,
                        "a prepared job cannot have a tag, a completion word or dependencies");
        return NULL;
}

/* The approximate size of the copy: each part is an allocation of its own. */
static size_t prepared_n_bytes(const Gpuq__V1__Job *job) {
        const size_t n_extra = 32;
        size_t n_bytes = sizeof(Prepared) + sizeof(*job) + strlen(job->label) +
                         job->operations.len + 4 * n_extra;

        n_bytes += job->n_buffers * (sizeof(Gpuq__V1__Buffer) + sizeof(void *) + n_extra);
        for (size_t i = 0; i < job->n_kernels; ++i)
                n_bytes += sizeof(Gpuq__V1__Kernel) + sizeof(void *) + 2 * n_extra +
                           strlen(job->kernels[i]->name);
        return n_bytes;
}

static Gpuq__V1__Job *prepared_copy(const Gpuq__V1__Job *job) {
        size_t n_packed = gpuq__v1__job__get_packed_size(job);
        _cleanup_(freep) uint8_t *packed = malloc(n_packed + 1);

        if (!packed)
                return NULL;
        gpuq__v1__job__pack(job, packed);
        return gpuq__v1__job__unpack(NULL, n_packed, packed);
}

Failure *prepared_new(User *user, uint32_t id, const Gpuq__V1__Job *job, const JobTexts *texts,
                      Prepared **ret_prepared) {
        _cleanup_(prepared_freep) Prepared *prepared = calloc(1, sizeof(*prepared));
        size_t n_bytes = prepared_n_bytes(job);
        Failure *failure;

        failure = prepared_check(job);
        if (failure)
                return failure;
        if (!prepared)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a prepared job");
        if (user_charge(user, &prepared->charge, USER_PREPARED_BYTES, n_bytes) == USER_E_QUOTA)
                return failure_new(FAILURE_QUOTA,
                                   "the prepared job has %zu bytes, and those of user %s already "
                                   "have %llu; the limit is %u together and is fixed",
                                   n_bytes, user->name,
                                   (unsigned long long)user->used[USER_PREPARED_BYTES],
                                   USER_PREPARED_MAX);
        prepared->job = prepared_copy(job);
        if (!prepared->job)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a prepared job");

        prepared->id = id;
        prepared->texts = *texts;
        *ret_prepared = TAKE_PTR(prepared);
        return NULL;
}

Prepared *prepared_free(Prepared *prepared) {
        if (!prepared)
                return NULL;

        user_uncharge(&prepared->charge);
        if (prepared->job)
                gpuq__v1__job__free_unpacked(prepared->job, NULL);
        free(prepared);
        return NULL;
}

/* ---- firing ---------------------------------------------------------------- */

/* Memory for the parts that differ per job, reused from job to job. */
typedef struct PreparedScratch {
        Gpuq__V1__Buffer buffers[PREPARED_BUFFERS_MAX];
        Gpuq__V1__Buffer *list[PREPARED_BUFFERS_MAX];
        uint8_t operations[PREPARED_OPERATIONS_MAX];
} PreparedScratch;

static PreparedScratch *prepared_scratch(void) {
        static PreparedScratch scratch;

        return &scratch;
}

static Failure *prepared_set_slices(Gpuq__V1__Job *job, const Gpuq__V1__Fire *fire) {
        PreparedScratch *scratch = prepared_scratch();

        if (fire->n_slices % 4)
                return failure_new(FAILURE_INVALID,
                                   "the slices have %zu numbers, which is not a multiple of 4",
                                   fire->n_slices);
        if (!fire->n_slices)
                return NULL;

        for (size_t i = 0; i < job->n_buffers; ++i)
                scratch->list[i] = job->buffers[i];
        job->buffers = scratch->list;

        for (size_t i = 0; i < fire->n_slices; i += 4) {
                const uint64_t *slice = &fire->slices[i];
                Gpuq__V1__Buffer *buffer;

                if (slice[0] >= job->n_buffers)
                        return failure_new(
                                FAILURE_INVALID,
                                "a slice replaces buffer %llu, but the prepared job has %zu",
                                (unsigned long long)slice[0] + 1, job->n_buffers);
                buffer = &scratch->buffers[slice[0]];
                *buffer = *job->buffers[slice[0]];
                buffer->arena = slice[1];
                buffer->offset = slice[2];
                buffer->length = slice[3];
                job->buffers[slice[0]] = buffer;
        }
        return NULL;
}

static Failure *prepared_patch(Gpuq__V1__Job *job, const Gpuq__V1__Fire *fire) {
        size_t n_used = 0;

        for (size_t i = 0; i < fire->n_patches; i += 2) {
                uint32_t offset = fire->patches[i], n = fire->patches[i + 1];

                if (n > job->operations.len || offset > job->operations.len - n)
                        return failure_new(
                                FAILURE_INVALID,
                                "a patch replaces bytes %u to %llu, but the operations have %zu",
                                offset, (unsigned long long)offset + n, job->operations.len);
                if (n > fire->values.len - n_used)
                        return failure_new(FAILURE_INVALID,
                                           "the patches are longer than their values");
                if (n)
                        memcpy(job->operations.data + offset, fire->values.data + n_used, n);
                n_used += n;
        }
        return NULL;
}

static Failure *prepared_set_values(Gpuq__V1__Job *job, const Gpuq__V1__Fire *fire) {
        PreparedScratch *scratch = prepared_scratch();

        if (fire->n_patches % 2)
                return failure_new(FAILURE_INVALID,
                                   "the patches have %zu numbers, which is not a multiple of 2",
                                   fire->n_patches);
        if (!fire->n_patches)
                return NULL;

        if (job->operations.len)
                memcpy(scratch->operations, job->operations.data, job->operations.len);
        job->operations.data = scratch->operations;
        return prepared_patch(job, fire);
}

Failure *prepared_job(const Prepared *prepared, const Gpuq__V1__Fire *fire,
                      Gpuq__V1__Job *ret_job) {
        Failure *failure;

        *ret_job = *prepared->job;
        ret_job->tag = fire->tag;
        ret_job->word_arena = fire->word_arena;
        ret_job->word_offset = fire->word_offset;
        failure = prepared_set_slices(ret_job, fire);
        return failure ? failure : prepared_set_values(ret_job, fire);
}
