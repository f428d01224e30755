/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_is_one_thread_an_element),
                cmocka_unit_test(the_kernels_limit_bounds_the_default_block),
                cmocka_unit_test(what_was_given_stays),
                cmocka_unit_test(no_element_and_very_many_still_make_a_grid),
                cmocka_unit_test(parameters_are_told_by_kind_or_size),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
