/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "kernel.h"

static void the_default_is_one_thread_an_element(void **state) {
        gpuq_config config = {};

        kernel_default_launch(&config, 1024, 1000);
        assert_int_equal(config.block[0], 256);
        assert_int_equal(config.grid[0], 4);
}

static void the_kernels_limit_bounds_the_default_block(void **state) {
        gpuq_config config = {};

        kernel_default_launch(&config, 64, 65);
        assert_int_equal(config.block[0], 64);
        assert_int_equal(config.grid[0], 2);
}

static void what_was_given_stays(void **state) {
        gpuq_config config = {.block = {8, 8, 2}}, both = {.grid = {3, 2}, .block = {5}};

        kernel_default_launch(&config, 0, 1025);
        assert_int_equal(config.block[0], 8);
        assert_int_equal(config.grid[0], 9);
        kernel_default_launch(&both, 1, 1000);
        assert_int_equal(both.grid[0], 3);
        assert_int_equal(both.block[0], 5);
}

static void no_element_and_very_many_still_make_a_grid(void **state) {
        gpuq_config none = {}, many = {};

        kernel_default_launch(&none, 0, 0);
        assert_int_equal(none.grid[0], 1);
        kernel_default_launch(&many, 0, UINT64_MAX);
        assert_int_equal(many.grid[0], 0x7fffffff);
}

static void parameters_are_told_by_kind_or_size(void **state) {
        const gpuq_parameter parameters[] = {{GPUQ_POINTER, 8}, {GPUQ_I32, 4}, {GPUQ_BYTES, 12}};
        gpuq_kernel_info kernel = {
                .parameters = parameters, .n_parameters = 3, .kinds_known = true};
        char *text;

        text = kernel_parameters(&kernel);
        assert_string_equal(text, "pointer i32 12-bytes");
        free(text);

        kernel.kinds_known = false;
        text = kernel_parameters(&kernel);
        assert_string_equal(text, "8-bytes 4-bytes 12-bytes");
        free(text);
}

/* @wanted: words of the refusal; NULL: it is taken. */
static void assert_checked(const char *text, const char *argument, unsigned number,
                           const char *wanted) {
        const gpuq_kernel_info kernel = {.name = "k_f32", .text = text};
        Problem problem = {};
        Argument parsed = {};
        int r;

        assert_int_equal(argument_parse(argument, number, &problem, &parsed), 0);
        r = kernel_check_array(&kernel, &parsed, &problem);
        assert_int_equal(r, wanted ? EXIT_USAGE : 0);
        if (wanted)
                assert_non_null(strstr(problem_text(&problem), wanted));
        argument_clear(&parsed);
        problem_clear(&problem);
}

static void the_type_of_an_array_is_that_of_the_description(void **state) {
        const char *argmax = "finds\nin:x:f32:n out:s:u64:1 u64:n\none block";
        const char *move = "moves\nout:w:u32:n,k out:y:u64:n real:a\nany";

        assert_checked(argmax, "out:s.npy:u64:1", 2, NULL);
        assert_checked(argmax, "out:s.npy:uint64:1", 2, NULL);
        assert_checked(argmax, "out:s.npy:f32:1", 2,
                       "`out:s:u64:1' of k_f32 must be uint64, not float32");
        assert_checked(argmax, "out:s.npy:i64:1", 2, "must be uint64, not int64");
        assert_checked(move, "out:w.npy:u32:8", 1, NULL);
        assert_checked(move, "out:w.npy:f32:8", 1, "must be uint32, not float32");
        assert_checked(move, "out:y.npy:u32:8", 2, "must be uint64, not uint32");
}

static void what_is_no_array_or_not_described_is_not_checked(void **state) {
        const char *argmax = "finds\nin:x:f32:n out:s:u64:1 u64:n\none block";

        assert_checked(argmax, "out:s.npy:f32:1", 3, NULL); /* the library refuses it by its kind */
        assert_checked(argmax, "out:s.npy:f32:1", 4, NULL);
        assert_checked(argmax, "f32:1", 2, NULL);
        assert_checked("", "out:s.npy:f64:1", 1, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_is_one_thread_an_element),
                cmocka_unit_test(the_kernels_limit_bounds_the_default_block),
                cmocka_unit_test(what_was_given_stays),
                cmocka_unit_test(no_element_and_very_many_still_make_a_grid),
                cmocka_unit_test(parameters_are_told_by_kind_or_size),
                cmocka_unit_test(the_type_of_an_array_is_that_of_the_description),
                cmocka_unit_test(what_is_no_array_or_not_described_is_not_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
