/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_HUMAN_H
#define GPUQ_UTIL_HUMAN_H

/*
 * Sizes and times for people to read: three digits and a unit.
 */

#include <stdint.h>

#define HUMAN_BYTES 24

typedef struct Human {
        char text[HUMAN_BYTES];
} Human;

/** human_bytes() - "1.50 MiB". Use as human_bytes(n).text. */
Human human_bytes(uint64_t bytes);
/** human_ns() - "12.3 us", "4.56 s", "3m 20s", "2d 3h". */
Human human_ns(uint64_t ns);
/** human_us() - the same of microseconds. */
Human human_us(uint64_t us);

#endif
