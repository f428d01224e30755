/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/shadow.h"

#include <errno.h>
#include <stdlib.h>

#include "util/macro.h"

#define WORD_BYTES UINT64_C(4)
#define WORD_SPAN  UINT64_C(32) /* bytes of memory with a bit in one word */

/* Until it has a place. */
#define SHADOW_WANTED UINT64_MAX

static bool has_shadow(const StagingBuffer *buffer) {
        return buffer->direction == STAGING_OUT && buffer->length > 0;
}

/* A buffer may begin and end within a word's span. One word more aligns the block. */
uint64_t shadow_bytes(const StagingBuffer *buffers, size_t n_buffers) {
        uint64_t n_words = 0;

        for (size_t i = 0; i < n_buffers; ++i)
                if (has_shadow(&buffers[i]))
                        n_words += buffers[i].length / WORD_SPAN + 2;
        return n_words > 0 ? (n_words + 1) * WORD_BYTES : 0;
}

uint64_t shadow_of(const StagingBuffer *buffer) {
        if (buffer->direction == STAGING_IN)
                return CHECK_NO_WRITES;
        return has_shadow(buffer) ? SHADOW_WANTED : CHECK_NO_SHADOW;
}

/* ---- places ------------------------------------------------------------------------------ */

/* With the bit of the byte at @address, in a span. */
static CUdeviceptr word_of(const CheckRange *span, uint64_t address) {
        return span->shadow + (address / WORD_SPAN - span->begin / WORD_SPAN) * WORD_BYTES;
}

static int range_compare(const void *a, const void *b) {
        const CheckRange *const *left = a, *const *right = b;

        return ((*left)->begin > (*right)->begin) - ((*left)->begin < (*right)->begin);
}

static size_t wanted_find(CheckRange *ranges, size_t n_ranges, CheckRange **wanted) {
        size_t n = 0;

        for (size_t i = 0; i < n_ranges; ++i)
                if (ranges[i].shadow == SHADOW_WANTED)
                        wanted[n++] = &ranges[i];
        qsort(wanted, n, sizeof(*wanted), range_compare);
        return n;
}

int shadow_place(CheckRange *ranges, size_t n_ranges, CUdeviceptr block, CheckRange *spans,
                 size_t *ret_n_spans) {
        _cleanup_(freep) CheckRange **wanted = calloc(n_ranges + 1, sizeof(*wanted));
        CUdeviceptr next = (block + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES;
        CheckRange *last = NULL;
        size_t n, n_spans = 0;

        if (!wanted)
                return -ENOMEM;

        n = wanted_find(ranges, n_ranges, wanted);
        for (size_t i = 0; i < n; ++i) {
                uint64_t begin = wanted[i]->begin, end = begin + wanted[i]->n_bytes;

                if (!last || begin >= last->begin + last->n_bytes) {
                        last = &spans[n_spans++];
                        *last = (CheckRange){.begin = begin, .shadow = next};
                }
                wanted[i]->shadow = word_of(last, begin);
                last->n_bytes = MAX(last->n_bytes, end - last->begin);
                next = word_of(last, last->begin + last->n_bytes - 1) + WORD_BYTES;
        }
        *ret_n_spans = n_spans;
        return 0;
}

/* ---- what is written --------------------------------------------------------------------- */

static CUresult span_set(const Driver *cu, const CheckRange *span, uint64_t begin, uint64_t end,
                         CUstream stream) {
        CUdeviceptr origin = span->shadow - span->begin / WORD_SPAN * WORD_BYTES;

        begin = MAX(begin, span->begin);
        end = MIN(end, span->begin + span->n_bytes);
        if (begin >= end)
                return CUDA_SUCCESS;
        return cu->cuMemsetD8Async(origin + begin / 8, 0xff, (end - 1) / 8 - begin / 8 + 1, stream);
}

CUresult shadow_set(const Driver *cu, const CheckRange *spans, size_t n_spans, uint64_t begin,
                    uint64_t end, CUstream stream) {
        CUresult result = CUDA_SUCCESS;

        for (size_t i = 0; i < n_spans && result == CUDA_SUCCESS; ++i)
                result = span_set(cu, &spans[i], begin, end, stream);
        return result;
}
