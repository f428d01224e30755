/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only options that change the meaning of the source itself are taken from clients.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compiler/options.h"
#include "util/macro.h"

static void what_is_documented_is_allowed(void **state) {
        static const char *const good[] = {
                "-DA",
                "-DA=1",
                "-DA=a b\"c",
                "-D_a9=",
                "-UA",
                "-std=c++17",
                "-std=c++20",
                "--std=c++14",
                "--use_fast_math",
                "-use_fast_math",
                "-maxrregcount=1",
                "--maxrregcount=255",
                "-lineinfo",
                "--generate-line-info",
                "-G",
                "--device-debug",
                "-Iinc",
                "-I@/home/me/my inc",
                "--check",
                "--fmad=false",
                "-fmad=true",
                "-ftz=true",
                "--prec-div=false",
                "-prec-sqrt=true",
                "--device-int128",
                "-device-int128",
        };

        assert_int_equal(options_find_bad(good, ARRAY_SIZE(good)), ARRAY_SIZE(good));
        assert_int_equal(options_find_bad(NULL, 0), 0);
}

static void everything_else_is_not(void **state) {
        static const char *const bad[] = {
                "",
                "-D",
                "-D9",
                "-DA B=1",
                "-DA\n",
                "-U",
                "-UA=1",
                "-std=c++99",
                "-std=gnu++17",
                "-I/etc",
                "-include",
                "/etc/passwd",
                "-O3",
                "-fplugin=x",
                "@file",
                "-D-A",
                "-o",
                "-Wl,-x",
                "-I",
                "-I..",
                "-Ia/../b",
                "-I/",
                "-Ia//b",
                "-I.",
                "-maxrregcount=",
                "-maxrregcount=0",
                "-maxrregcount=256",
                "-maxrregcount=-1",
                "-maxrregcount=9x",
                "-g",
                "-lineinfo=1",
                "-check",
                "--check=1",
                "--fmad",
                "--fmad=",
                "--fmad=yes",
                "---fmad=true",
                "fmad=true",
                "-ftz=true ",
                "--device-int128=true",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(options_find_bad(&bad[i], 1), 0);
}

static void the_first_bad_one_is_told(void **state) {
        static const char *const options[] = {"-DA", "-UB", "-O3", "-g"};

        assert_int_equal(options_find_bad(options, ARRAY_SIZE(options)), 2);
}

static void the_last_standard_counts(void **state) {
        static const char *const options[] = {"-std=c++11", "-DA", "-std=c++20", "-std=c++14"};

        assert_int_equal(options_standard(options, 4, 0), 14);
        assert_int_equal(options_standard(options, 3, 17), 20);
        assert_int_equal(options_standard(options, 4, 17), 17);
        assert_int_equal(options_standard(options + 1, 1, 0), 0);
        assert_false(options_fast_math(options, 4));
}

static void options_of_the_linker_are_found(void **state) {
        static const char *const options[] = {"-maxrregcount=64", "-G", "--maxrregcount=32",
                                              "-generate-line-info"};

        assert_int_equal(options_registers(options, 4), 32);
        assert_int_equal(options_registers(options, 2), 64);
        assert_int_equal(options_registers(options + 1, 1), 0);
        assert_true(options_debug(options, 4));
        assert_false(options_debug(options, 1));
        assert_true(options_line_info(options, 4));
        assert_false(options_line_info(options, 3));
        assert_string_equal(options_folder("-I@/inc"), "@/inc");
        assert_null(options_folder("-DI"));
}

static void check_is_found(void **state) {
        static const char *const options[] = {"-DA", "--check"};

        assert_true(options_checked(options, 2));
        assert_false(options_checked(options, 1));
        assert_false(options_checked(NULL, 0));
}

static void the_last_switch_counts(void **state) {
        static const char *const options[] = {"--fmad=false", "-ftz=true", "-fmad=true"};

        assert_int_equal(options_switch(options, 3, OPTIONS_FMAD), OPTIONS_TRUE);
        assert_int_equal(options_switch(options, 2, OPTIONS_FMAD), OPTIONS_FALSE);
        assert_int_equal(options_switch(options, 3, OPTIONS_FTZ), OPTIONS_TRUE);
        assert_int_equal(options_switch(options, 3, OPTIONS_PREC_DIV), OPTIONS_NOT_GIVEN);
        assert_true(options_is_switch("-prec-sqrt=false"));
        assert_false(options_is_switch("-DA"));
}

static void a_similar_option_is_named(void **state) {
        assert_string_equal(options_nearest("-maxregcount=32"), "-maxrregcount=N");
        assert_string_equal(options_nearest("-line-info"), "-lineinfo");
        assert_string_equal(options_nearest("--fmda=false"), "--fmad=true|false");
        assert_string_equal(options_nearest("--use-fast-math"), "--use_fast_math");
        assert_string_equal(options_nearest("--device_int128"), "--device-int128");
        assert_null(options_nearest("-Xptxas"));
        assert_null(options_nearest(""));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_documented_is_allowed),
                cmocka_unit_test(everything_else_is_not),
                cmocka_unit_test(the_first_bad_one_is_told),
                cmocka_unit_test(the_last_standard_counts),
                cmocka_unit_test(options_of_the_linker_are_found),
                cmocka_unit_test(check_is_found),
                cmocka_unit_test(the_last_switch_counts),
                cmocka_unit_test(a_similar_option_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
