/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words
 *
 * See words.h.
 */

#include "keeper/words.h"

#include <stdarg.h>
#include <stdio.h>

static void words_take(Words *words, char *word) {
        char **items;

        items = reallocarray(words->items, words->n_items + 2, sizeof(*items));
        if (!items) {
                words->failed = true;
                free(word);
                return;
        }

        items[words->n_items++] = word;
        items[words->n_items] = NULL;
        words->items = items;
}

void words_add(Words *words, const char *format, ...) {
        char *word;
        va_list args;
        int r;

        va_start(args, format);
        r = vasprintf(&word, format, args);
        va_end(args);

        if (r < 0)
                words->failed = true;
        else
                words_take(words, word);
}

void words_add_env(Words *words, const char *name) {
        const char *value = getenv(name);

        if (value)
                words_add(words, "%s=%s", name, value);
}

void words_finish(Words *words) {
        for (size_t i = 0; i < words->n_items; i++)
                free(words->items[i]);
        free(words->items);
        *words = (Words){};
}
