/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ADDRESSES_H
#define GPUQ_SUPERVISOR_ADDRESSES_H

/*
 * Addresses
 *
 * Where device memory is mapped, in every worker alike, within the range of util/fixed_range.h. Each
 * of 17 sizes, the powers of two from 8 MiB to 512 GiB, has 4 TiB of it, cut into at most 65,536
 * places, as many as the ledger has arenas. Pure.
 */

#include <stdint.h>

#define ADDRESSES_SIZES  17u
#define ADDRESSES_PLACES 65536u /* of one size, at most */

/* Zeroed: all are free. */
typedef struct Addresses {
        uint64_t taken[ADDRESSES_SIZES][ADDRESSES_PLACES / 64]; /* a bit each */
        uint32_t next[ADDRESSES_SIZES]; /* the place where the search for a free one begins */
} Addresses;

/**
 * addresses_take() - reserve a range for @size bytes and unmapped guards around them
 *
 * One that was given back is taken again as late as possible, so that a stale pointer faults.
 *
 * Return: the address, a multiple of 8 MiB, or 0: there is none left.
 */
uint64_t addresses_take(Addresses *addresses, uint64_t size);
/** addresses_claim() - take the address that a restored arena has; 0 and foreign ones are fine. */
void addresses_claim(Addresses *addresses, uint64_t address);
/** addresses_give() - an address is free again; 0 and foreign ones are fine. */
void addresses_give(Addresses *addresses, uint64_t address);

#endif
