/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <stdlib.h>

#include "client/lib/jobs/spelling.h"

/* Each of @words becomes one of @wanted; both end with NULL. */
static void assert_spelled(const char *const *words, const char *const *wanted) {
        for (; *words; wanted++) {
                char *option = NULL;

                assert_int_equal(spelling_take(&words, &option), 0);
                assert_string_equal(option, *wanted);
                free(option);
        }
        assert_null(*wanted);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void an_option_may_be_two_words(void **state) {
        assert_spelled(
                WORDS("-D", "X=1", "-maxrregcount", "32", "-U", "Y", "--fmad", "false", "-I", "a b",
                      "--std", "c++17"),
                WORDS("-DX=1", "-maxrregcount=32", "-UY", "--fmad=false", "-Ia b", "-std=c++17"));
}

static void the_daemon_knows_one_name_of_each(void **state) {
        assert_spelled(WORDS("--define-macro=X=1", "-define-macro", "X", "--undefine-macro=Y",
                             "--include-path=inc", "-include-path", "inc", "--maxrregcount=64",
                             "-ftz=true", "-prec-div=false", "--prec-sqrt=true", "-I=inc"),
                       WORDS("-DX=1", "-DX", "-UY", "-Iinc", "-Iinc", "-maxrregcount=64",
                             "--ftz=true", "--prec-div=false", "--prec-sqrt=true", "-Iinc"));
}

static void other_options_stay_as_they_are(void **state) {
        assert_spelled(WORDS("-DX=1", "-G", "-lineinfo", "--use_fast_math", "-Iinc", "", "X",
                             "---fmad", "-stdlib", "--D=1"),
                       WORDS("-DX=1", "-G", "-lineinfo", "--use_fast_math", "-Iinc", "", "X",
                             "---fmad", "-stdlib", "--D=1"));
}

static void a_missing_value_is_told(void **state) {
        static const struct {
                const char *option, *text;
        } missing[] = {
                {"-I", "the option -I needs a folder"},
                {"-D", "the option -D needs a macro"},
                {"-maxrregcount", "the option -maxrregcount needs a number"},
                {"--fmad", "the option --fmad needs true or false"},
        };

        for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
                const char *const *words = WORDS(missing[i].option);
                char *option = NULL;

                assert_int_equal(spelling_take(&words, &option), GPUQ_E_INVALID);
                assert_string_equal(gpuq_error_text(), missing[i].text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_option_may_be_two_words),
                cmocka_unit_test(the_daemon_knows_one_name_of_each),
                cmocka_unit_test(other_options_stay_as_they_are),
                cmocka_unit_test(a_missing_value_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
