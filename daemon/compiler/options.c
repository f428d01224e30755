/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"
#include "util/near.h"

#define PATH_BYTES_MAX 1024u
#define REGISTERS_MAX  255u /* of a thread, on every device */

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

/* With one dash or two. */
static bool is_one_of(const char *option, const char *const *names, size_t n_names) {
        for (size_t i = 0; i < n_names; i++)
                if (strcmp(option, names[i]) == 0)
                        return true;
        return false;
}

static bool is_line_info(const char *option) {
        static const char *const names[] = {"-lineinfo", "--generate-line-info",
                                            "-generate-line-info", "--lineinfo"};

        return is_one_of(option, names, ARRAY_SIZE(names));
}

static bool is_debug(const char *option) {
        static const char *const names[] = {"-G", "--device-debug", "-device-debug"};

        return is_one_of(option, names, ARRAY_SIZE(names));
}

/* Return: 0: it is not -maxrregcount=N. */
static unsigned registers(const char *option) {
        static const char name[] = "-maxrregcount=";
        unsigned long number;
        char *end;

        if (strncmp(option, "--", 2) == 0)
                option++;
        if (strncmp(option, name, strlen(name)) != 0)
                return 0;

        option += strlen(name);
        number = strtoul(option, &end, 10);
        return isdigit((unsigned char)*option) && !*end && number <= REGISTERS_MAX ? number : 0;
}

bool options_is_int128(const char *option) {
        static const char *const names[] = {"--device-int128", "-device-int128"};

        return is_one_of(option, names, ARRAY_SIZE(names));
}

bool options_is_path(const char *path) {
        const char *part = path;

        if (strlen(path) > PATH_BYTES_MAX)
                return false;
        for (;;) {
                size_t n = strcspn(part, "/");

                if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0))
                        return false;
                for (size_t i = 0; i < n; i++)
                        if ((unsigned char)part[i] < ' ')
                                return false;
                if (!part[n])
                        return true;
                part += n + 1;
        }
}

const char *options_folder(const char *option) {
        return strncmp(option, "-I", 2) == 0 && options_is_path(option + 2) ? option + 2 : NULL;
}

bool options_is_opencl(const char *option) {
        static const char *const known[] = {
                "-cl-std=CL1.0",        "-cl-std=CL1.1",        "-cl-std=CL1.2",
                "-cl-std=CL2.0",        "-cl-std=CL3.0",        "-cl-fast-relaxed-math",
                "-cl-mad-enable",       "-cl-finite-math-only", "-cl-unsafe-math-optimizations",
                "-cl-denorms-are-zero", "-cl-no-signed-zeros",
        };

        return is_one_of(option, known, ARRAY_SIZE(known));
}

/* With one dash or two. Return: "true" or "false", or NULL: it is not -NAME=true or -NAME=false. */
static const char *switch_value(const char *option, const char *name) {
        size_t n_dashes = strspn(option, "-"), n = strlen(name);

        if (n_dashes < 1 || n_dashes > 2)
                return NULL;
        option += n_dashes;
        if (strncmp(option, name, n) != 0 || option[n] != '=')
                return NULL;
        option += n + 1;
        return strcmp(option, "true") == 0 || strcmp(option, "false") == 0 ? option : NULL;
}

static const char *const switch_names[] = {
        [OPTIONS_FMAD] = "fmad",
        [OPTIONS_FTZ] = "ftz",
        [OPTIONS_PREC_DIV] = "prec-div",
        [OPTIONS_PREC_SQRT] = "prec-sqrt",
};

bool options_is_switch(const char *option) {
        for (size_t i = 0; i < ARRAY_SIZE(switch_names); i++)
                if (switch_value(option, switch_names[i]))
                        return true;
        return false;
}

OptionsValue options_switch(const char *const *options, size_t n_options, OptionsSwitch which) {
        OptionsValue last = OPTIONS_NOT_GIVEN;

        for (size_t i = 0; i < n_options; i++) {
                const char *value = switch_value(options[i], switch_names[which]);

                if (value)
                        last = *value == 't' ? OPTIONS_TRUE : OPTIONS_FALSE;
        }
        return last;
}

static bool is_check(const char *option) {
        return strcmp(option, "--check") == 0;
}

static bool is_allowed(const char *option) {
        return options_is_macro(option) || standard(option) || is_fast_math(option) ||
               is_line_info(option) || is_debug(option) || is_check(option) || registers(option) ||
               options_is_switch(option) || options_is_int128(option) ||
               options_is_opencl(option) || options_folder(option);
}

size_t options_find_bad(const char *const *options, size_t n_options) {
        size_t i;

        for (i = 0; i < n_options; i++)
                if (!is_allowed(options[i]))
                        break;

        return i;
}

const char *options_nearest(const char *option) {
        static const struct {
                const char *name, *spelling;
        } known[] = {
                {"use_fast_math", "--use_fast_math"},
                {"maxrregcount", "-maxrregcount=N"},
                {"lineinfo", "-lineinfo"},
                {"generate-line-info", "--generate-line-info"},
                {"device-debug", "--device-debug"},
                {"device-int128", "--device-int128"},
                {"check", "--check"},
                {"std", "-std=c++17"},
                {"fmad", "--fmad=true|false"},
                {"ftz", "--ftz=true|false"},
                {"prec-div", "--prec-div=true|false"},
                {"prec-sqrt", "--prec-sqrt=true|false"},
        };
        const char *word = option + strspn(option, "-");
        _cleanup_(freep) char *name = strndup(word, strcspn(word, "="));
        Near near = near_to(name ? name : "");

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                near_offer(&near, known[i].name);
        for (size_t i = 0; near.found && i < ARRAY_SIZE(known); i++)
                if (near.found == known[i].name)
                        return known[i].spelling;
        return NULL;
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

unsigned options_registers(const char *const *options, size_t n_options) {
        unsigned last = 0;

        for (size_t i = 0; i < n_options; i++)
                last = registers(options[i]) ?: last;

        return last;
}

bool options_line_info(const char *const *options, size_t n_options) {
        for (size_t i = 0; i < n_options; i++)
                if (is_line_info(options[i]))
                        return true;

        return false;
}

bool options_debug(const char *const *options, size_t n_options) {
        for (size_t i = 0; i < n_options; i++)
                if (is_debug(options[i]))
                        return true;

        return false;
}

bool options_checked(const char *const *options, size_t n_options) {
        for (size_t i = 0; i < n_options; i++)
                if (is_check(options[i]))
                        return true;

        return false;
}
