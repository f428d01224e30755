/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging
 *
 * The host slices are sorted by arena and offset; a sweep joins those that
 * overlap, or are neighbours, into regions and, for each of the three actions, into
 * ranges. Each list of ranges is in the order of the scratch block. Those in device memory are
 * swept likewise.
 */
#include "worker/staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

/* Far below 2^64, so that sums of offsets cannot overflow. */
#define STAGING_BYTES_MAX (UINT64_C(1) << 56)

typedef struct StagingSlice {
        const StagingBuffer *buffer;
        size_t index; /* into buffers */
} StagingSlice;

size_t staging_room(size_t n_buffers) {
        return n_buffers * (sizeof(uint64_t) + 4 * sizeof(StagingRange) + sizeof(StagingSlice)) +
               sizeof(StagingRange);
}

static int staging_compare(const void *a, const void *b) {
        const StagingSlice *x = a, *y = b;

        if (x->buffer->arena != y->buffer->arena)
                return (uintptr_t)x->buffer->arena < (uintptr_t)y->buffer->arena ? -1 : 1;
        if (x->buffer->offset != y->buffer->offset)
                return x->buffer->offset < y->buffer->offset ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

/* Most jobs have few buffers, for which qsort() is dear. */
static void staging_sort(StagingSlice *slices, size_t n) {
        if (n > 16) {
                qsort(slices, n, sizeof(*slices), staging_compare);
                return;
        }
        for (size_t i = 1; i < n; ++i) {
                StagingSlice slice = slices[i];
                size_t k = i;

                for (; k > 0 && staging_compare(&slices[k - 1], &slice) > 0; --k)
                        slices[k] = slices[k - 1];
                slices[k] = slice;
        }
}

/* Whether a slice at @offset continues the memory from @start to @end, apart from a gap for
 * alignment. */
static bool staging_is_neighbour(uint64_t start, uint64_t end, uint64_t offset) {
        return offset >= end && offset - end < STAGING_ALIGNMENT &&
               start % STAGING_ALIGNMENT == 0 && offset % STAGING_ALIGNMENT == 0;
}

/*
 * Adds a slice to the ranges of one action. It is joined with the last range if they overlap or
 * touch. With @gaps (the gap may be read but not written) it is also joined with a neighbour.
 */
static void staging_add(StagingRange *ranges, size_t *n_ranges, const StagingBuffer *buffer,
                        uint64_t scratch, bool gaps) {
        StagingRange *last = *n_ranges ? &ranges[*n_ranges - 1] : NULL;
        uint64_t end = buffer->offset + buffer->length;

        /* The same distance from arena to scratch: the same region. */
        if (last && last->arena == buffer->arena &&
            last->offset - last->scratch == buffer->offset - scratch &&
            (buffer->offset <= last->offset + last->length ||
             (gaps &&
              staging_is_neighbour(last->offset, last->offset + last->length, buffer->offset)))) {
                if (end > last->offset + last->length)
                        last->length = end - last->offset;
                last->whole &= buffer->whole;
                return;
        }

        ranges[(*n_ranges)++] = (StagingRange){
                .arena = buffer->arena,
                .offset = buffer->offset,
                .scratch = scratch,
                .length = buffer->length,
                .whole = buffer->whole,
        };
}

/* Whether no zeros follow the last copy in. Slices are sorted by offset, so none can be added
 * in the gap later. */
static bool staging_gap_is_free(const Staging *staging) {
        const StagingRange *zero, *in;

        if (staging->n_in == 0 || staging->n_zero == 0)
                return true;
        zero = &staging->zero[staging->n_zero - 1];
        in = &staging->in[staging->n_in - 1];
        return zero->scratch + zero->length <= in->scratch + in->length;
}

static void staging_place(Staging *staging, const StagingSlice *slice, uint64_t scratch) {
        const StagingBuffer *buffer = slice->buffer;

        staging->scratch[slice->index] = scratch;
        if (buffer->direction == STAGING_OUT)
                staging_add(staging->zero, &staging->n_zero, buffer, scratch, false);
        else
                staging_add(staging->in, &staging->n_in, buffer, scratch,
                            staging_gap_is_free(staging));
        if (buffer->direction != STAGING_IN)
                staging_add(staging->out, &staging->n_out, buffer, scratch, false);
}

/* How many slices, from the first one on, overlap in a chain or are neighbours, and where they
 * end. */
static size_t staging_region(const StagingSlice *slices, size_t n, bool are_apart,
                             uint64_t *ret_end) {
        uint64_t start = slices[0].buffer->offset, end = start + slices[0].buffer->length;
        size_t i;

        for (i = 1; i < n; ++i) {
                const StagingBuffer *buffer = slices[i].buffer;

                if (buffer->arena != slices[0].buffer->arena ||
                    (buffer->offset >= end &&
                     (are_apart || !staging_is_neighbour(start, end, buffer->offset))))
                        break;
                if (buffer->offset + buffer->length > end)
                        end = buffer->offset + buffer->length;
        }

        *ret_end = end;
        return i;
}

static int staging_sweep(Staging *staging, const StagingSlice *slices, size_t n, uint64_t gap) {
        uint64_t top = 0, end, align = gap > 0 ? STAGING_APART_ALIGNMENT : STAGING_ALIGNMENT;

        for (size_t i = 0, n_region; i < n; i += n_region) {
                uint64_t start = slices[i].buffer->offset, place = top;

                n_region = staging_region(slices + i, n - i, gap > 0, &end);
                /* Several slices must keep the alignment that each has in the arena. */
                if (n_region > 1)
                        place += start % align;
                if (end - start > STAGING_BYTES_MAX - place)
                        return -EOVERFLOW;

                for (size_t k = i; k < i + n_region; ++k)
                        staging_place(staging, &slices[k],
                                      place + (slices[k].buffer->offset - start));

                top = place + (end - start) + gap + align - 1;
                top -= top % align;
        }

        staging->n_bytes = top;
        return 0;
}

/* Whether some byte of the scratch block is in both. */
static bool staging_meet(const StagingRange *a, size_t n_a, const StagingRange *b, size_t n_b) {
        size_t i = 0, k = 0;

        while (i < n_a && k < n_b) {
                if (a[i].scratch + a[i].length <= b[k].scratch)
                        ++i;
                else if (b[k].scratch + b[k].length <= a[i].scratch)
                        ++k;
                else
                        return true;
        }
        return false;
}

/* ---- device memory ------------------------------------------------------------------------- */

static bool staging_is_in_device(const StagingBuffer *buffer) {
        return buffer->arena && buffer->in_device && buffer->length > 0;
}

static void staging_clear(Staging *staging, const void *arena, uint64_t begin, uint64_t end) {
        StagingRange *last = staging->n_clear ? &staging->clear[staging->n_clear - 1] : NULL;

        if (begin >= end)
                return;
        if (last && last->arena == arena && last->offset + last->length == begin) {
                last->length += end - begin;
                return;
        }
        staging->clear[staging->n_clear++] = (StagingRange){
                .arena = arena,
                .offset = begin,
                .length = end - begin,
        };
}

/*
 * Counts the slices of one arena, as many as there are at first. Up to the beginning of the next
 * slice, all slices that have begun cover the same bytes, so only the furthest ends of both kinds
 * matter.
 *
 * Return: how many.
 */
static size_t staging_sweep_device(Staging *staging, const StagingSlice *slices, size_t n) {
        const void *arena = slices[0].buffer->arena;
        uint64_t out_end = 0, read_end = 0;
        size_t i;

        for (i = 0; i < n && slices[i].buffer->arena == arena; ++i) {
                const StagingBuffer *buffer = slices[i].buffer;
                bool is_last = i + 1 == n || slices[i + 1].buffer->arena != arena;
                uint64_t end = buffer->offset + buffer->length;

                if (buffer->direction == STAGING_OUT)
                        out_end = MAX(out_end, end);
                else
                        read_end = MAX(read_end, end);
                staging_clear(staging, arena, MAX(buffer->offset, read_end),
                              is_last ? out_end : MIN(out_end, slices[i + 1].buffer->offset));
        }
        return i;
}

/* The only slice that is cleared, if no other slice overlaps it, as in most jobs; else NULL. */
static const StagingBuffer *staging_lone_out(const StagingBuffer *buffers, size_t n_buffers) {
        const StagingBuffer *out = NULL;

        for (size_t i = 0; i < n_buffers; ++i) {
                if (!staging_is_in_device(&buffers[i]) || buffers[i].whole ||
                    buffers[i].direction != STAGING_OUT)
                        continue;
                if (out)
                        return NULL;
                out = &buffers[i];
        }
        for (size_t i = 0; out && i < n_buffers; ++i)
                if (&buffers[i] != out && buffers[i].arena == out->arena &&
                    buffers[i].offset < out->offset + out->length &&
                    out->offset < buffers[i].offset + buffers[i].length)
                        return NULL;
        return out;
}

static void staging_plan_device(Staging *staging, const StagingBuffer *buffers, size_t n_buffers,
                                StagingSlice *slices) {
        const StagingBuffer *lone = staging_lone_out(buffers, n_buffers);
        bool any = false;
        size_t n = 0;

        if (lone) {
                staging_clear(staging, lone->arena, lone->offset, lone->offset + lone->length);
                return;
        }
        for (size_t i = 0; i < n_buffers; ++i) {
                if (!staging_is_in_device(&buffers[i]) || buffers[i].whole)
                        continue;
                any |= buffers[i].direction == STAGING_OUT;
                slices[n++] = (StagingSlice){&buffers[i], i};
        }
        if (!any)
                return;

        staging_sort(slices, n);
        for (size_t i = 0; i < n;)
                i += staging_sweep_device(staging, slices + i, n - i);
}

int staging_plan(const StagingBuffer *buffers, size_t n_buffers, uint64_t gap, void *memory,
                 Staging *ret_staging) {
        Staging staging = {0};
        StagingSlice *slices;
        size_t n = 0;
        bool empty = false;
        int r;

        staging.scratch = memory;
        staging.zero = (void *)(staging.scratch + n_buffers);
        staging.in = staging.zero + n_buffers + 1;
        staging.out = staging.in + n_buffers;
        staging.clear = staging.out + n_buffers;
        slices = (void *)(staging.clear + n_buffers);

        for (size_t i = 0; i < n_buffers; ++i) {
                staging.scratch[i] = 0;
                if (!buffers[i].arena || buffers[i].in_device)
                        continue;
                if (buffers[i].length == 0)
                        empty = true; /* begins where the block does: valid, and never touched */
                else
                        slices[n++] = (StagingSlice){&buffers[i], i};
        }

        staging_sort(slices, n);
        r = staging_sweep(&staging, slices, n, gap);
        if (r < 0)
                return r;
        if (empty && staging.n_bytes == 0)
                staging.n_bytes = STAGING_ALIGNMENT;

        staging.ordered = staging_meet(staging.zero, staging.n_zero, staging.in, staging.n_in);
        staging.updates = staging_meet(staging.in, staging.n_in, staging.out, staging.n_out);
        staging_plan_device(&staging, buffers, n_buffers, slices);
        *ret_staging = staging;
        return 0;
}

/* What no copy fills; with `ordered`, all, as a copy over it follows. */
void staging_fence(Staging *staging, uint64_t margin) {
        uint64_t at = 0;
        size_t n = 0;

        if (staging->n_bytes == 0)
                return;
        staging->n_bytes += margin;
        for (size_t i = 0; i <= staging->n_in && !staging->ordered; ++i) {
                const StagingRange *in = i < staging->n_in ? &staging->in[i] : NULL;
                uint64_t end = in ? in->scratch : staging->n_bytes;

                if (end > at)
                        staging->zero[n++] = (StagingRange){.scratch = at, .length = end - at};
                if (in)
                        at = in->scratch + in->length;
        }
        if (staging->ordered)
                staging->zero[n++] = (StagingRange){.length = staging->n_bytes};
        staging->n_zero = n;
}
