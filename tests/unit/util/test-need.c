/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a buffer a built-in kernel reaches, from its text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "util/need.h"

#define GEMM "multiplies\nin:A:f32:m,k in:B:f64:k,n out:s:i32:1 u64:m u64:n u64:k f32:a\nany grid"

static void a_shape_names_the_lengths(void **state) {
        Need needs[7];

        assert_int_equal(need_parse(GEMM, needs, 7), 3);
        assert_int_equal(needs[0].element, 4);
        assert_int_equal(needs[0].n_lengths, 2);
        assert_int_equal(needs[0].lengths[0], 3);
        assert_int_equal(needs[0].lengths[1], 5);
        assert_int_equal(needs[1].element, 8);
        assert_int_equal(needs[1].lengths[0], 5);
        assert_int_equal(needs[1].lengths[1], 4);
        assert_int_equal(needs[2].n_lengths, 0);
        assert_int_equal(need_begin(&needs[2]), 4);
        for (size_t i = 3; i < 7; i++)
                assert_int_equal(needs[i].element, 0);
}

static void numbers_in_a_shape_are_multiplied(void **state) {
        Need needs[2];

        assert_int_equal(need_parse("t\nin:a:f64:3,n,2 u64:n\n", needs, 2), 1);
        assert_int_equal(need_multiply(need_begin(&needs[0]), 10), 480);
}

/* The text of a user's kernel, of an older daemon, or of somebody who is up to something. */
static void other_texts_tell_of_no_needs(void **state) {
        static const char *const texts[] = {
                "",
                "\n",
                "text",
                "t\nin:a out:b u64:n\nl",
                "t\nin:a:f32: u64:n",
                "t\nin:a:f32:m u64:n",
                "t\nin:a:f31:n u64:n",
                "t\nin:a:f32:n,n,n,n u64:n",
                "t\nin:a:f32:99999999999999999999 u64:n",
                "t\nin:a:f32:60000,60000,60000 u64:n",
                "t\nin:a:f32:n i32:n",
                "t\nf32:a:f32:n u64:n",
                "t\n:::: ,,, :,",
                "t\nu64:n x y in:a:f32:late u64:late",
        };
        Need needs[3];

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                memset(needs, 0xff, sizeof(needs));
                assert_int_equal(need_parse(texts[i], needs, 3), 0);
                for (size_t k = 0; k < 3; k++)
                        assert_int_equal(needs[k].element, 0);
        }
}

static void a_product_beyond_all_memory_stays_there(void **state) {
        assert_true(need_multiply(need_multiply(4, 1ull << 62), 2) == UINT64_MAX);
        assert_true(need_multiply(UINT64_MAX, 2) == UINT64_MAX);
        assert_true(need_multiply(4, 0) == 0);
}

static void what_is_needed_and_there_is_said(void **state) {
        const Need need = {.element = 4, .n_fixed = 1};
        char text[128];

        need_describe(&need, 4000, 40, text, sizeof(text));
        assert_string_equal(text,
                            "needs 4000 bytes (1000 elements of 4 bytes), but its buffer has 40");
        need_describe(&need, UINT64_MAX, 40, text, sizeof(text));
        assert_string_equal(text,
                            "needs more than 2^64 bytes for these lengths, but its buffer has 40");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_shape_names_the_lengths),
                cmocka_unit_test(numbers_in_a_shape_are_multiplied),
                cmocka_unit_test(other_texts_tell_of_no_needs),
                cmocka_unit_test(a_product_beyond_all_memory_stays_there),
                cmocka_unit_test(what_is_needed_and_there_is_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
