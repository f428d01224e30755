/* SPDX-License-Identifier: Apache-2.0 */
#include "near.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/macro.h"

#define NEAR_SLIPS_MAX 2 /* more slips make another word */

/* The edit distance: how many characters to insert, delete or replace to turn one word into the
 * other. */
static size_t near_distance(const char *a, const char *b) {
        size_t row[64], n_b = strlen(b);

        if (n_b >= ARRAY_SIZE(row))
                return SIZE_MAX;
        for (size_t j = 0; j <= n_b; j++)
                row[j] = j;

        for (size_t i = 0; a[i]; i++) {
                size_t corner = row[0];

                row[0] = i + 1;
                for (size_t j = 0; j < n_b; j++) {
                        size_t change = corner + (a[i] != b[j]);

                        corner = row[j + 1];
                        row[j + 1] = MIN(change, MIN(row[j], row[j + 1]) + 1);
                }
        }
        return row[n_b];
}

Near near_to(const char *word) {
        /* Fewer edits are allowed in a short word, because they would turn it into any other. */
        return (Near){.word = word, .distance = MIN(strlen(word), (size_t)NEAR_SLIPS_MAX + 1)};
}

void near_offer(Near *near, const char *candidate) {
        size_t n_word = strlen(near->word);
        bool is_begin = n_word >= 2 && strncmp(near->word, candidate, n_word) == 0;
        size_t distance = is_begin ? 0 : near_distance(near->word, candidate);

        if (distance >= near->distance)
                return;
        near->distance = distance;
        near->found = candidate;
}
