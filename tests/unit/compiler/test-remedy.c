/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/remedy.h"

static void functions_of_the_host_are_to_be_left_out(void **state) {
        const char *log = "a.cu(1): error: A function explicitly marked as a __host__ function is "
                          "not allowed in JIT mode\n";

        assert_true(remedy_is_of_host(log));
        assert_non_null(strstr(remedy(log), "#ifndef __CUDACC_RTC__"));
}

static void variables_of_the_host_never_become_the_devices(void **state) {
        const char *log = "a.cu(1): error: A namespace scope variable [...] is considered a host "
                          "variable, and host variables are not allowed in JIT mode.\n"
                          "a.cu(2): error: A function explicitly marked as a __host__ function is "
                          "not allowed in JIT mode\n";

        assert_false(remedy_is_of_host(log));
        assert_non_null(strstr(remedy(log), "#ifndef __CUDACC_RTC__"));
}

static void texture_references_have_a_successor(void **state) {
        assert_non_null(
                strstr(remedy("a.cu(1): error: texture is not a template\n"), "gpuq_texture()"));
        assert_non_null(
                strstr(remedy("a.cu:1:1: error: no template named 'texture'\n"), "gpuq_texture()"));
        assert_non_null(strstr(remedy("a.cu:1:19: error: use of undeclared identifier "
                                      "'cudaReadModeElementType'\n"),
                               "gpuq_texture()"));
}

static void other_errors_speak_for_themselves(void **state) {
        const char *log = "a.cu(1): error: identifier \"texture\" is undefined\n";

        assert_false(remedy_is_of_host(log));
        assert_string_equal(remedy(log), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(functions_of_the_host_are_to_be_left_out),
                cmocka_unit_test(variables_of_the_host_never_become_the_devices),
                cmocka_unit_test(texture_references_have_a_successor),
                cmocka_unit_test(other_errors_speak_for_themselves),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
