/* SPDX-License-Identifier: Apache-2.0 */
#include "order_ranges.h"

#include <stdlib.h>

#include "util/macro.h"

#define BLOCK_FIRST  64u /* bytes */
#define BLOCK_FACTOR 4u
#define BLOCK_LAST   (1ull << 60)

static int access_compare(const void *one, const void *other) {
        const OrderAccess *a = one, *b = other;

        if (a->object != b->object)
                return a->object < b->object ? -1 : 1;
        if (a->write != b->write)
                return a->write - b->write;
        return (a->offset > b->offset) - (a->offset < b->offset);
}

static bool access_is_same_kind(const OrderAccess *a, const OrderAccess *b) {
        return a->object == b->object && a->write == b->write;
}

/* Buffers are mostly in order. */
static void ranges_sort(OrderAccess *accesses, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (access_compare(&accesses[i - 1], &accesses[i]) > 0) {
                        qsort(accesses, n, sizeof(*accesses), access_compare);
                        return;
                }
}

static size_t ranges_drop_empty(OrderAccess *accesses, size_t n) {
        size_t n_left = 0;

        for (size_t i = 0; i < n; i++)
                if (accesses[i].length > 0)
                        accesses[n_left++] = accesses[i];
        return n_left;
}

/* The access as whole blocks, of a power of two; the last block of the address space lacks a byte. */
static OrderAccess access_round(OrderAccess access, uint64_t block) {
        uint64_t end = access.offset + access.length, rest = end & (block - 1);

        access.offset &= ~(block - 1);
        if (rest > 0)
                end = end > UINT64_MAX - (block - rest) ? UINT64_MAX : end + (block - rest);
        access.length = end - access.offset;
        return access;
}

/* Return: how many are left of sorted ranges, which stay sorted. */
static size_t ranges_join(OrderAccess *accesses, size_t n, uint64_t block) {
        size_t n_left = 0;

        for (size_t i = 0; i < n; i++) {
                OrderAccess next = access_round(accesses[i], block);
                OrderAccess *last = n_left > 0 ? &accesses[n_left - 1] : NULL;

                if (last && access_is_same_kind(last, &next) &&
                    next.offset <= last->offset + last->length)
                        last->length = MAX(last->length, next.offset + next.length - last->offset);
                else
                        accesses[n_left++] = next;
        }
        return n_left;
}

static size_t ranges_count_kinds(const OrderAccess *accesses, size_t n) {
        size_t n_kinds = 0;

        for (size_t i = 0; i < n; i++)
                n_kinds += i == 0 || !access_is_same_kind(&accesses[i - 1], &accesses[i]);
        return n_kinds;
}

size_t orderranges_merge(OrderAccess *accesses, size_t n) {
        size_t n_max;

        n = ranges_drop_empty(accesses, n);
        ranges_sort(accesses, n);
        n = ranges_join(accesses, n, 1);
        if (n <= ORDERRANGES_MAX)
                return n;

        n_max = MAX((size_t)ORDERRANGES_MAX, ranges_count_kinds(accesses, n));
        for (uint64_t block = BLOCK_FIRST; n > n_max && block <= BLOCK_LAST; block *= BLOCK_FACTOR)
                n = ranges_join(accesses, n, block);
        return n;
}
