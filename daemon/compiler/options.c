/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

static bool is_name(const char *s, size_t n) {
        if (n == 0 || isdigit((unsigned char)*s))
                return false;

        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)s[i]) && s[i] != '_')
                        return false;

        return true;
}

bool options_is_macro(const char *option) {
        if (strncmp(option, "-D", 2) == 0)
                return is_name(option + 2, strcspn(option + 2, "=")) && !strpbrk(option, "\n\r");
        return strncmp(option, "-U", 2) == 0 && is_name(option + 2, strlen(option + 2));
}

/* Return: 11 for "-std=c++11", 0 for what is no standard. */
static unsigned standard(const char *option) {
        static const char *const known[] = {"11", "14", "17", "20"};

        if (strncmp(option, "--", 2) == 0)
                option++;
        if (strncmp(option, "-std=c++", 8) != 0)
                return 0;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(option + 8, known[i]) == 0)
                        return atoi(known[i]);

        return 0;
}

static bool is_fast_math(const char *option) {
        return strcmp(option, "--use_fast_math") == 0 || strcmp(option, "-use_fast_math") == 0;
}

static bool is_check(const char *option) {
        return strcmp(option, "--check") == 0;
}

size_t options_find_bad(const char *const *options, size_t n_options) {
        size_t i;

        for (i = 0; i < n_options; i++)
                if (!options_is_macro(options[i]) && !standard(options[i]) &&
                    !is_fast_math(options[i]) && !is_check(options[i]))
                        break;

        return i;
}

unsigned options_standard(const char *const *options, size_t n_options, unsigned least) {
        unsigned last = 0;

        for (size_t i = 0; i < n_options; i++)
                if (standard(options[i]))
                        last = standard(options[i]);

        return MAX(last, least);
}

bool options_fast_math(const char *const *options, size_t n_options) {
        for (size_t i = 0; i < n_options; i++)
                if (is_fast_math(options[i]))
                        return true;

        return false;
}

bool options_checked(const char *const *options, size_t n_options) {
        for (size_t i = 0; i < n_options; i++)
                if (is_check(options[i]))
                        return true;

        return false;
}
