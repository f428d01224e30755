/* SPDX-License-Identifier: Apache-2.0 */
#include "regions.h"

#include <stddef.h>

#define REGION_GUARD (FIXED_REGION_PLACE / 2) /* at least, on both sides */

/* Return: 0: it does not fit. */
static unsigned region_places(uint64_t size) {
        if (size > FIXED_REGION_BYTES - 2 * FIXED_REGION_PLACE)
                return 0;
        return (unsigned)((size + REGION_GUARD + FIXED_REGION_PLACE - 1) / FIXED_REGION_PLACE);
}

static bool region_is_taken(const Region *region, unsigned place) {
        return region->taken[place / 64] >> place % 64 & 1;
}

static void region_mark(Region *region, unsigned place, unsigned n, bool is_taken) {
        for (unsigned i = place; i < place + n && i < REGIONS_PLACES; ++i) {
                if (is_taken)
                        region->taken[i / 64] |= UINT64_C(1) << i % 64;
                else
                        region->taken[i / 64] &= ~(UINT64_C(1) << i % 64);
        }
}

/* Return: the first of @n free places from @from on; REGIONS_PLACES: there are none. */
static unsigned region_find(const Region *region, unsigned from, unsigned n) {
        unsigned n_free = 0;

        for (unsigned i = from; i < REGIONS_PLACES; ++i) {
                if (n_free == 0 && i % 64 == 0 && region->taken[i / 64] == UINT64_MAX) {
                        i += 63;
                        continue;
                }
                n_free = region_is_taken(region, i) ? 0 : n_free + 1;
                if (n_free == n)
                        return i + 1 - n;
        }
        return REGIONS_PLACES;
}

/* Its owner's own, else one that nobody has. Return: its index; FIXED_REGIONS: there is none. */
static unsigned regions_of(const Regions *regions, uint32_t owner) {
        unsigned unused = FIXED_REGIONS;

        for (unsigned i = 0; i < FIXED_REGIONS; ++i) {
                const Region *region = &regions->regions[i];

                if (region->n_others > 0)
                        continue;
                if (region->n_arenas > 0 && region->owner == owner)
                        return i;
                if (region->n_arenas == 0 && unused == FIXED_REGIONS)
                        unused = i;
        }
        return unused;
}

bool regions_has_one(const Regions *regions, uint32_t owner) {
        return regions_of(regions, owner) < FIXED_REGIONS;
}

uint64_t regions_take(Regions *regions, uint64_t size, uint32_t owner) {
        unsigned i = regions_of(regions, owner), n = region_places(size), place;
        Region *region;

        if (i == FIXED_REGIONS || n == 0)
                return 0;
        region = &regions->regions[i];
        place = region_find(region, region->next, n);
        if (place == REGIONS_PLACES)
                place = region_find(region, 0, n);
        if (place == REGIONS_PLACES)
                return 0;

        region_mark(region, place, n, true);
        region->next = place + n;
        region->owner = owner;
        ++region->n_arenas;
        return FIXED_RANGE_BEGIN + i * FIXED_REGION_BYTES + place * FIXED_REGION_PLACE +
               REGION_GUARD;
}

static unsigned place_of(uint64_t address) {
        return (unsigned)((address - FIXED_RANGE_BEGIN) % FIXED_REGION_BYTES / FIXED_REGION_PLACE);
}

void regions_claim(Regions *regions, uint64_t address, uint64_t size, uint32_t owner) {
        Region *region = &regions->regions[fixed_region(address)];

        region->owner = owner;
        ++region->n_arenas;
        region_mark(region, place_of(address), region_places(size), true);
}

void regions_give(Regions *regions, uint64_t address, uint64_t size) {
        Region *region = &regions->regions[fixed_region(address)];

        region_mark(region, place_of(address), region_places(size), false);
        --region->n_arenas;
}

void regions_block(Regions *regions, uint64_t address, int more) {
        if (address - FIXED_RANGE_BEGIN < FIXED_RANGE_BYTES)
                regions->regions[fixed_region(address)].n_others += (unsigned)more;
}
