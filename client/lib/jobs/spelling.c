/* SPDX-License-Identifier: Apache-2.0 */
#include "spelling.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

/* An option with a value. */
typedef struct Spelling {
        const char *name;  /* behind its dashes */
        const char *start; /* of the daemon's word; the value follows */
        const char *wants; /* for messages */
} Spelling;

static const Spelling spellings[] = {
        {"D", "-D", "a macro"},
        {"define-macro", "-D", "a macro"},
        {"U", "-U", "a macro"},
        {"undefine-macro", "-U", "a macro"},
        {"I", "-I", "a folder"},
        {"include-path", "-I", "a folder"},
        {"std", "-std=", "a standard, such as c++17"},
        {"maxrregcount", "-maxrregcount=", "a number"},
        {"fmad", "--fmad=", "true or false"},
        {"ftz", "--ftz=", "true or false"},
        {"prec-div", "--prec-div=", "true or false"},
        {"prec-sqrt", "--prec-sqrt=", "true or false"},
};

/* Return: NULL: the option has no value, or has it in the same word without a "=". */
static const Spelling *spelling_find(const char *option, const char **ret_value) {
        size_t n_dashes = strspn(option, "-");

        if (n_dashes < 1 || n_dashes > 2)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
                const Spelling *spelling = &spellings[i];
                size_t n = strlen(spelling->name);

                if ((n == 1 && n_dashes == 2) || strncmp(option + n_dashes, spelling->name, n) != 0)
                        continue;
                *ret_value = option + n_dashes + n;
                if (!**ret_value || **ret_value == '=')
                        return spelling;
        }
        return NULL;
}

int spelling_take(const char *const **options, char **ret_option) {
        const char *word = *(*options)++, *value;
        const Spelling *spelling = spelling_find(word, &value);

        if (!spelling) {
                *ret_option = strdup(word);
                return *ret_option ? 0 : error_memory();
        }
        if (!*value && !**options)
                return error_set(GPUQ_E_INVALID, "the option %s needs %s", word, spelling->wants);

        value = *value ? value + 1 : *(*options)++;
        if (asprintf(ret_option, "%s%s", spelling->start, value) < 0) {
                *ret_option = NULL;
                return error_memory();
        }
        return 0;
}
