/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/opencl.h"

#define HEAD   ".version 6.3\n.target sm_60, texmode_independent\n.address_size 64\n"
#define MEMORY ".extern .shared .align 16 .b8 gpuq_local_memory[];\n"

static void expect(const char *given, const char *wanted) {
        char *text = NULL;
        size_t n_text;

        assert_int_equal(opencl_rewrite(given, &text, &n_text), 0);
        assert_string_equal(text, wanted);
        assert_int_equal(n_text, strlen(wanted));
        free(text);
}

static void a_kernel_without_local_arguments_stays(void **state) {
        expect(HEAD ".entry f(\n\t.param .u32 f_param_0\n)\n{\n\tld.param.u32 \t%r1, "
                    "[f_param_0];\n\tret;\n}\n",
               ".version 6.3\n.target sm_60\n.address_size 64\n" MEMORY
               ".entry f(\n\t.param .u32 f_param_0\n)\n{\n\tld.param.u32 \t%r1, "
               "[f_param_0];\n\tret;\n}\n");
}

static void the_address_of_the_launchs_memory_is_added(void **state) {
        expect(HEAD ".entry f(\n\t.param .u64 .ptr .shared .align 4 f_param_0,\n"
                    "\t.param .u64 .ptr .global .align 4 f_param_01\n)\n{\n"
                    "\tld.param.u64 \t%rd1, [f_param_0];\n"
                    "\tld.param.u64 \t%rd2, [f_param_01];\n}\n"
                    ".entry g(\n\t.param .u64 f_param_0\n)\n{\n"
                    "\tld.param.u64 \t%rd1, [f_param_0];\n}\n",
               ".version 6.3\n.target sm_60\n.address_size 64\n" MEMORY
               ".entry f(\n\t.param .u64 .ptr .shared .align 4 f_param_0,\n"
               "\t.param .u64 .ptr .global .align 4 f_param_01\n)\n{\n"
               "\t.reg .b64 \t%gpuq_local;\n\tmov.u64 \t%gpuq_local, gpuq_local_memory;\n"
               "\tld.param.u64 \t%rd1, [f_param_0];\n"
               "\tadd.s64 \t%rd1, %rd1, %gpuq_local;\n"
               "\tld.param.u64 \t%rd2, [f_param_01];\n}\n"
               ".entry g(\n\t.param .u64 f_param_0\n)\n{\n"
               "\tld.param.u64 \t%rd1, [f_param_0];\n}\n");
}

/* Rather than a wrong address. */
static void another_use_of_a_local_argument_is_refused(void **state) {
        char *text = NULL;
        size_t n_text;

        assert_int_equal(opencl_rewrite(HEAD ".entry f(\n\t.param .u64 .ptr .shared f_param_0\n)\n"
                                             "{\n\tld.param.u32 \t%r1, [f_param_0];\n}\n",
                                        &text, &n_text),
                         OPENCL_E_LOCAL);
        assert_null(text);
}

static void more_local_arguments_than_there_is_room_for_are_refused(void **state) {
        char given[8192] = HEAD ".entry f(\n", *text = NULL;
        size_t n_text;

        for (unsigned i = 0; i <= OPENCL_LOCALS_MAX; i++)
                strcat(given, "\t.param .u64 .ptr .shared .align 4 p,\n");
        assert_int_equal(opencl_rewrite(given, &text, &n_text), OPENCL_E_LOCAL);
}

/* A host passes a global address for a __constant argument. */
static void constant_memory_becomes_global_memory(void **state) {
        expect(HEAD
               ".visible .const .align 4 .b8 t[4] = {1, 2, 3, 4};\n"
               ".entry f(\n\t.param .u64 .ptr .const .align 4 f_param_0\n)\n{\n"
               "\tld.const.v2.f32 \t{%f1, %f2}, [%rd1];\n\tst.global.u32 [%rd1], x.constant;\n}\n",
               ".version 6.3\n.target sm_60\n.address_size 64\n" MEMORY
               ".visible .global .align 4 .b8 t[4] = {1, 2, 3, 4};\n"
               ".entry f(\n\t.param .u64 .ptr .global .align 4 f_param_0\n)\n{\n"
               "\tld.global.v2.f32 \t{%f1, %f2}, [%rd1];\n\tst.global.u32 [%rd1], "
               "x.constant;\n}\n");
}

static void variables_that_can_change_are_refused(void **state) {
        char *text = NULL;
        size_t n_text;

        assert_int_equal(
                opencl_rewrite(HEAD ".visible .global .align 4 .u32 counter;\n", &text, &n_text),
                OPENCL_E_VARIABLE);
        assert_null(text);
}

static void a_target_without_a_mode_stays(void **state) {
        expect(".target sm_60\n.b, c\n", ".target sm_60\n.b, c\n");
}

static void an_argument_says_no_more_than_its_type_to_cuda(void **state) {
        char text[] = "f(.param .u64 .ptr .shared .align 4 a, .param .u64 .ptr .global b,\n"
                      ".param .u64 .ptr .shared c)";

        opencl_hide_spaces(text, strlen(text));
        assert_string_equal(text,
                            "f(.param .u64 .ptr         .align 4 a, .param .u64 .ptr .global b,\n"
                            ".param .u64 .ptr         c)");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_kernel_without_local_arguments_stays),
                cmocka_unit_test(the_address_of_the_launchs_memory_is_added),
                cmocka_unit_test(another_use_of_a_local_argument_is_refused),
                cmocka_unit_test(constant_memory_becomes_global_memory),
                cmocka_unit_test(variables_that_can_change_are_refused),
                cmocka_unit_test(a_target_without_a_mode_stays),
                cmocka_unit_test(an_argument_says_no_more_than_its_type_to_cuda),
                cmocka_unit_test(more_local_arguments_than_there_is_room_for_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
