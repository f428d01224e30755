/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_NEAR_H
#define GPUQ_UTIL_NEAR_H

/*
 * Near
 *
 * Suggestions for a mistyped word: the candidate with the fewest edits, at most one for each three
 * characters and two in all, or a candidate that starts with the word.
 */

#include <stddef.h>

typedef struct Near {
        const char *word;  /* as typed; borrowed */
        const char *found; /* NULL: no suggestion; borrowed from near_offer() */
        size_t distance;
} Near;

/** near_to() - start without candidates. */
Near near_to(const char *word);
/** near_offer() - add a candidate; of equally good ones the first wins. */
void near_offer(Near *near, const char *candidate);

#endif
