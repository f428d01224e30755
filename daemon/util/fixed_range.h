/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_FIXED_RANGE_H
#define GPUQ_UTIL_FIXED_RANGE_H

/*
 * Fixed range
 *
 * The addresses at which all workers map device memory. Neither Linux nor CUDA uses them by itself: they are above
 * the shadow memory of AddressSanitizer and below programs. A worker reserves the whole range before it makes its
 * context: CUDA takes a wish for an address only as long as it has no reserved addresses to spare.
 */

#include <stdbool.h>
#include <stdint.h>

#define FIXED_RANGE_BEGIN (UINT64_C(17) << 40)
#define FIXED_RANGE_BYTES (UINT64_C(68) << 40)

/*
 * With fence = yes the range consists of regions, each of one person (a user with its subordinate uids)
 * at a time. Their addresses are odd multiples of half a place, so that they differ from those of gpuqds
 * without a fence.
 */
#define FIXED_REGION_BYTES (UINT64_C(1) << 40)
#define FIXED_REGION_PLACE (UINT64_C(8) << 20)
#define FIXED_REGIONS      (FIXED_RANGE_BYTES / FIXED_REGION_BYTES)

/** fixed_region_is() - whether it is an address of such a region. */
static inline bool fixed_region_is(uint64_t address) {
        return address - FIXED_RANGE_BEGIN < FIXED_RANGE_BYTES &&
               address % FIXED_REGION_PLACE == FIXED_REGION_PLACE / 2;
}
/** fixed_region() - the number of the region that an address of the range is in. */
static inline unsigned fixed_region(uint64_t address) {
        return (unsigned)((address - FIXED_RANGE_BEGIN) / FIXED_REGION_BYTES);
}

#endif
