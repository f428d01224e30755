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

#include <stdint.h>

#define FIXED_RANGE_BEGIN (UINT64_C(17) << 40)
#define FIXED_RANGE_BYTES (UINT64_C(68) << 40)

#endif
