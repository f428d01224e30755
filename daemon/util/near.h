/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_NEAR_H
#define GPUQ_UTIL_NEAR_H

/*
 * Near
 *
 * Which of several words was probably meant by one that is none of them: the one with
 * the fewest slips, at most two, or one that it begins.
 */

#include <stddef.h>

typedef struct Near {
        const char *word;  /* as typed; borrowed */
        const char *found; /* NULL: nothing is near; borrowed from near_offer() */
        size_t distance;
} Near;

/** near_to() - nothing was offered yet. */
Near near_to(const char *word);
/** near_offer() - one that might have been meant; of several that are as near the first stays. */
void near_offer(Near *near, const char *candidate);

#endif
