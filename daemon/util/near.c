/* SPDX-License-Identifier: Apache-2.0 */
#include "near.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/macro.h"

#define NEAR_WORD_MAX   63u
#define NEAR_SLIPS_MAX  2u /* more slips make another word */
#define NEAR_PER_SLIP   3u /* characters for each: one slip turns a shorter word into any other */
#define NEAR_FIRST_FROM 6u /* characters of words whose first one may be wrong: few mistype it */

/* Row @i of the edit distance, from the two rows before it: how many characters to insert, delete or
 * replace, or neighbours to swap, to turn the first @i + 1 characters of @a into each beginning of @b. */
static void near_row(const char *a, const char *b, size_t n_b, size_t i,
                     size_t rows[3][NEAR_WORD_MAX + 1]) {
        size_t *row = rows[2], *above = rows[1];

        row[0] = i + 1;
        for (size_t j = 0; j < n_b; j++) {
                row[j + 1] = MIN(above[j] + (a[i] != b[j]), MIN(row[j], above[j + 1]) + 1);
                if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j])
                        row[j + 1] = MIN(row[j + 1], rows[0][j - 1] + 1);
        }
}

static size_t near_distance(const char *a, const char *b) {
        size_t rows[3][NEAR_WORD_MAX + 1] = {}, n_b = strlen(b);

        if (n_b > NEAR_WORD_MAX)
                return SIZE_MAX;
        for (size_t j = 0; j <= n_b; j++)
                rows[2][j] = j;
        for (size_t i = 0; a[i]; i++) {
                memcpy(rows[0], rows[1], sizeof(rows[0]));
                memcpy(rows[1], rows[2], sizeof(rows[1]));
                near_row(a, b, n_b, i, rows);
        }
        return rows[2][n_b];
}

static bool near_begins_alike(const char *word, const char *candidate) {
        return *word == *candidate || (*word == candidate[1] && word[1] == *candidate);
}

/* How many slips leave a word recognizable. */
static size_t near_slips(const char *word, const char *candidate) {
        size_t n = MIN(strlen(word), strlen(candidate));

        if (n < NEAR_FIRST_FROM && (!n || !near_begins_alike(word, candidate)))
                return 0;
        return MIN(n / NEAR_PER_SLIP, (size_t)NEAR_SLIPS_MAX);
}

Near near_to(const char *word) {
        return (Near){.word = word, .distance = NEAR_SLIPS_MAX + 1};
}

void near_offer(Near *near, const char *candidate) {
        size_t n_word = strlen(near->word);
        bool is_begin = n_word >= 2 && strncmp(near->word, candidate, n_word) == 0;
        size_t distance = is_begin ? 0 : near_distance(near->word, candidate);

        if (distance >= near->distance || distance > near_slips(near->word, candidate))
                return;
        near->distance = distance;
        near->found = candidate;
}
