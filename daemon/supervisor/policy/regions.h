/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REGIONS_H
#define GPUQ_SUPERVISOR_REGIONS_H

/*
 * Regions
 *
 * Addresses of device memory with fence = yes: each person, a user with its subordinate uids, has a region of
 * the fixed range (util/fixed_range.h) for itself while it has device memory, so that between two of its arenas
 * there is nothing of another person. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/fixed_range.h"

#define REGIONS_PLACES ((unsigned)(FIXED_REGION_BYTES / FIXED_REGION_PLACE)) /* of a region */

typedef struct Region {
        uint32_t owner;
        unsigned n_arenas;
        unsigned
                n_others; /* arenas from before fence = yes, which may be anybody's: it is not used */
        unsigned next;    /* the place where the search for free ones begins */
        uint64_t taken[REGIONS_PLACES / 64]; /* a bit each */
} Region;

/* Zeroed: all are free. */
typedef struct Regions {
        Region regions[FIXED_REGIONS];
} Regions;

/**
 * regions_take() - reserve a range of a person's region, with unmapped guards around it
 * @owner: the person's uid
 *
 * One that was given back is taken again as late as possible, so that a stale pointer faults.
 *
 * Return: the address, as fixed_region_is() says, or 0: there is none left.
 */
uint64_t regions_take(Regions *regions, uint64_t size, uint32_t owner);
/** regions_has_one() - whether a person has a region, or there is one for it. */
bool regions_has_one(const Regions *regions, uint32_t owner);
/** regions_claim() - take the address that a restored arena has. */
void regions_claim(Regions *regions, uint64_t address, uint64_t size, uint32_t owner);
/** regions_give() - an address is free again. */
void regions_give(Regions *regions, uint64_t address, uint64_t size);
/** regions_block() - there is one more (1) or fewer (-1) arena at an address that is none of regions. */
void regions_block(Regions *regions, uint64_t address, int more);

#endif
