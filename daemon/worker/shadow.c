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

int shadow_place(CheckRange *ranges, size_t n_ranges, CUdeviceptr block) {
        _cleanup_(freep) CheckRange **wanted = calloc(n_ranges + 1, sizeof(*wanted));
        CUdeviceptr next = (block + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES, first = next;
        uint64_t begin = 0, end = 0; /* of those that overlap; begin counts spans */
        size_t n;

        if (!wanted)
                return -ENOMEM;

        n = wanted_find(ranges, n_ranges, wanted);
        for (size_t i = 0; i < n; ++i) {
                uint64_t span = wanted[i]->begin / WORD_SPAN;

                if (wanted[i]->begin >= end) {
                        begin = span;
                        first = next;
                }
                wanted[i]->shadow = first + (span - begin) * WORD_BYTES;
                end = MAX(end, wanted[i]->begin + wanted[i]->n_bytes);
                next = first + ((end - 1) / WORD_SPAN - begin + 1) * WORD_BYTES;
        }
        return 0;
}

/* ---- what is written --------------------------------------------------------------------- */

static CUresult range_set(const Driver *cu, const CheckRange *range, uint64_t begin, uint64_t end,
                          CUstream stream) {
        CUdeviceptr origin = range->shadow - range->begin / WORD_SPAN * WORD_BYTES;

        begin = MAX(begin, range->begin);
        end = MIN(end, range->begin + range->n_bytes);
        if (begin >= end)
                return CUDA_SUCCESS;
        return cu->cuMemsetD8Async(origin + begin / 8, 0xff, (end - 1) / 8 - begin / 8 + 1, stream);
}

CUresult shadow_set(const Driver *cu, const CheckRange *ranges, size_t n_ranges, uint64_t begin,
                    uint64_t end, CUstream stream) {
        CUresult result = CUDA_SUCCESS;

        for (size_t i = 0; i < n_ranges && result == CUDA_SUCCESS; ++i)
                if (ranges[i].shadow > CHECK_NO_SHADOW)
                        result = range_set(cu, &ranges[i], begin, end, stream);
        return result;
}
