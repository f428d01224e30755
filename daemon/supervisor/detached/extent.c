/* SPDX-License-Identifier: Apache-2.0 */
#include "extent.h"

#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

#define EXTENT_LINE 256u /* bytes; what kernels may count on of a buffer's address */

static int compare_extents(const void *a, const void *b) {
        const Extent *x = a, *y = b;

        if (x->arena != y->arena)
                return x->arena < y->arena ? -1 : 1;
        if (x->offset != y->offset)
                return x->offset < y->offset ? -1 : 1;
        return 0;
}

/* Each slice as an extent of its own, sorted. */
static void extents_fill(const ExtentSlice *slices, size_t n, Extent *extents) {
        for (size_t i = 0; i < n; ++i)
                extents[i] = (Extent){
                        .arena = slices[i].arena,
                        .offset = slices[i].offset,
                        .length = slices[i].length,
                        .read = slices[i].read,
                        .written = slices[i].written,
                };
        qsort(extents, n, sizeof(*extents), compare_extents);
}

static bool extents_overlap(const Extent *a, const Extent *b) {
        return a->arena == b->arena && b->offset < a->offset + a->length;
}

/* Return: how many are left. */
static size_t extents_merge(Extent *extents, size_t n) {
        size_t n_merged = 0;

        for (size_t i = 0; i < n; ++i) {
                Extent *last = n_merged ? &extents[n_merged - 1] : NULL;
                uint64_t end = extents[i].offset + extents[i].length;

                if (!last || !extents_overlap(last, &extents[i])) {
                        extents[n_merged++] = extents[i];
                        continue;
                }
                last->length = MAX(last->offset + last->length, end) - last->offset;
                last->read |= extents[i].read;
                last->written |= extents[i].written;
        }
        return n_merged;
}

static uint64_t extents_place(Extent *extents, size_t n) {
        uint64_t size = 0;

        for (size_t i = 0; i < n; ++i) {
                size = (size + EXTENT_LINE - 1) / EXTENT_LINE * EXTENT_LINE;
                extents[i].new_offset = size + extents[i].offset % EXTENT_LINE;
                size = extents[i].new_offset + extents[i].length;
        }
        return MAX(size, (uint64_t)1);
}

/* The last one that begins no later than the slice does. */
static const Extent *extents_find(const Extent *extents, size_t n, const ExtentSlice *slice) {
        const Extent key = {.arena = slice->arena, .offset = slice->offset};
        size_t low = 0, high = n;

        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;

                if (compare_extents(&extents[middle], &key) <= 0)
                        low = middle;
                else
                        high = middle;
        }
        return &extents[low];
}

size_t extents_pack(ExtentSlice *slices, size_t n_slices, Extent *extents, uint64_t *ret_size) {
        size_t n;

        extents_fill(slices, n_slices, extents);
        n = extents_merge(extents, n_slices);
        *ret_size = extents_place(extents, n);
        for (size_t i = 0; i < n_slices; ++i) {
                const Extent *extent = extents_find(extents, n, &slices[i]);

                slices[i].new_offset = extent->new_offset + (slices[i].offset - extent->offset);
        }
        return n;
}
