/* SPDX-License-Identifier: Apache-2.0 */
#include "extent.h"

#include <stdlib.h>

#include "util/macro.h"

#define EXTENT_LINE 256u /* bytes; the alignment of an address that kernels may rely on */

static int compare_extents(const void *a, const void *b) {
        const Extent *x = a, *y = b;

        if (x->arena != y->arena)
                return x->arena < y->arena ? -1 : 1;
        if (x->offset != y->offset)
                return x->offset < y->offset ? -1 : 1;
        return 0;
}

static Extent extent_of(const Gpuq__V1__Buffer *buffer) {
        return (Extent){
                .arena = buffer->arena,
                .offset = buffer->offset,
                .length = buffer->length,
                .read = buffer->direction == GPUQ__V1__DIRECTION__IN ||
                        buffer->direction == GPUQ__V1__DIRECTION__INOUT,
                .written = buffer->direction != GPUQ__V1__DIRECTION__IN,
        };
}

size_t extents_of(const Gpuq__V1__Job *job, Extent *extents) {
        size_t n = 0;

        for (size_t i = 0; i < job->n_buffers; ++i)
                extents[i] = extent_of(job->buffers[i]);
        if (job->n_buffers)
                qsort(extents, job->n_buffers, sizeof(*extents), compare_extents);
        for (size_t i = 0; i < job->n_buffers; ++i) {
                Extent *last = n ? &extents[n - 1] : NULL, *next = &extents[i];

                if (!last || last->arena != next->arena ||
                    next->offset >= last->offset + last->length) {
                        extents[n++] = *next;
                        continue;
                }
                last->length = MAX(last->length, next->offset + next->length - last->offset);
                last->read |= next->read;
                last->written |= next->written;
        }
        return n;
}

/* The last extent that begins at or before the buffer. */
const Extent *extents_find(const Extent *extents, size_t n, const Gpuq__V1__Buffer *buffer) {
        const Extent key = {.arena = buffer->arena, .offset = buffer->offset};
        size_t low = 0, high = n;

        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;

                if (compare_extents(&extents[middle], &key) <= 0)
                        low = middle;
                else
                        high = middle;
        }
        return n ? &extents[low] : NULL;
}

void extents_pack(Extent *extents, size_t n, Gpuq__V1__Job *job) {
        uint64_t size = 0;

        for (size_t i = 0; i < n; ++i) {
                size = (size + EXTENT_LINE - 1) / EXTENT_LINE * EXTENT_LINE;
                extents[i].new_offset = size + extents[i].offset % EXTENT_LINE;
                size = extents[i].new_offset + extents[i].length;
        }
        for (size_t i = 0; i < job->n_buffers; ++i) {
                Gpuq__V1__Buffer *buffer = job->buffers[i];
                const Extent *extent = extents_find(extents, n, buffer);

                buffer->offset = extent->new_offset + (buffer->offset - extent->offset);
                buffer->arena = 0;
        }
}

uint64_t extents_size(const Extent *extents, size_t n) {
        uint64_t size = 1;

        for (size_t i = 0; i < n; ++i)
                size = MAX(size, extents[i].offset + extents[i].length);
        return size;
}
