/* SPDX-License-Identifier: Apache-2.0 */
#include "addresses.h"

#include <stdbool.h>

#include "util/fixed_range.h"
#include "util/macro.h"

#define ADDRESSES_BEGIN FIXED_RANGE_BEGIN
#define ADDRESSES_BYTES (FIXED_RANGE_BYTES / ADDRESSES_SIZES) /* of one size */
#define ADDRESSES_SMALL 23u                                   /* log2 of the smallest size */
#define ADDRESSES_GUARD (UINT64_C(4) << 20) /* at least, beside the memory in its place */

static unsigned addresses_places(unsigned size) {
        return (unsigned)MIN(ADDRESSES_BYTES >> (ADDRESSES_SMALL + size), ADDRESSES_PLACES);
}

/* Return: an index of addresses->taken; ADDRESSES_SIZES: there is no such size. */
static unsigned addresses_size(uint64_t n_bytes) {
        unsigned size = 0;

        while (size < ADDRESSES_SIZES &&
               n_bytes > (UINT64_C(1) << (ADDRESSES_SMALL + size)) - ADDRESSES_GUARD)
                ++size;
        return size;
}

static uint64_t addresses_at(unsigned size, unsigned place) {
        return ADDRESSES_BEGIN + size * ADDRESSES_BYTES +
               ((uint64_t)place << (ADDRESSES_SMALL + size));
}

/* Return: false: it is none of these addresses. */
static bool addresses_find(uint64_t address, unsigned *ret_size, unsigned *ret_place) {
        uint64_t offset = address - ADDRESSES_BEGIN;
        unsigned size = (unsigned)MIN(offset / ADDRESSES_BYTES, ADDRESSES_SIZES);
        uint64_t place;

        if (address < ADDRESSES_BEGIN || size == ADDRESSES_SIZES)
                return false;
        place = offset % ADDRESSES_BYTES >> (ADDRESSES_SMALL + size);
        if (place >= addresses_places(size) || addresses_at(size, (unsigned)place) != address)
                return false;

        *ret_size = size;
        *ret_place = (unsigned)place;
        return true;
}

/* Return: the first free place from @from up to @end, or @end. */
static unsigned addresses_free_place(const uint64_t *taken, unsigned from, unsigned end) {
        for (unsigned place = from; place < end; place = (place / 64 + 1) * 64) {
                uint64_t is_free = ~taken[place / 64] >> place % 64;

                if (is_free)
                        return MIN(place + (unsigned)__builtin_ctzll(is_free), end);
        }
        return end;
}

uint64_t addresses_take(Addresses *addresses, uint64_t size) {
        unsigned index = addresses_size(size), n_places, place;

        if (index == ADDRESSES_SIZES)
                return 0;
        n_places = addresses_places(index);
        place = addresses_free_place(addresses->taken[index], addresses->next[index], n_places);
        if (place == n_places)
                place = addresses_free_place(addresses->taken[index], 0, n_places);
        if (place == n_places)
                return 0;

        addresses->taken[index][place / 64] |= UINT64_C(1) << place % 64;
        addresses->next[index] = place + 1;
        return addresses_at(index, place);
}

void addresses_claim(Addresses *addresses, uint64_t address) {
        unsigned size, place;

        if (addresses_find(address, &size, &place))
                addresses->taken[size][place / 64] |= UINT64_C(1) << place % 64;
}

void addresses_give(Addresses *addresses, uint64_t address) {
        unsigned size, place;

        if (addresses_find(address, &size, &place))
                addresses->taken[size][place / 64] &= ~(UINT64_C(1) << place % 64);
}
