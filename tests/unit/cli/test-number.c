/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "number.h"

static void a_number_is_the_whole_text(void **state) {
        static const char *const wrong[] = {"",   " 1",    "1 ",  "+1",  "-1",  "1x", "x",
                                            "0x", "0x0x1", "0xg", "1.0", "1e3", "\t1"};
        uint64_t value = 7;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
                assert_int_equal(number_unsigned(wrong[i], UINT64_MAX, &value), -EINVAL);
        assert_int_equal(value, 7);
}

static void decimal_and_hexadecimal_are_read_and_octal_is_not(void **state) {
        uint64_t value;

        assert_int_equal(number_unsigned("010", UINT64_MAX, &value), 0);
        assert_int_equal(value, 10);
        assert_int_equal(number_unsigned("0x10", UINT64_MAX, &value), 0);
        assert_int_equal(value, 16);
        assert_int_equal(number_unsigned("0", UINT64_MAX, &value), 0);
        assert_int_equal(value, 0);
}

static void what_does_not_fit_is_refused(void **state) {
        uint64_t value;
        int64_t negative;

        assert_int_equal(number_unsigned("18446744073709551615", UINT64_MAX, &value), 0);
        assert_true(value == UINT64_MAX);
        assert_int_equal(number_unsigned("18446744073709551616", UINT64_MAX, &value), -ERANGE);
        assert_int_equal(number_unsigned("256", 255, &value), -ERANGE);
        assert_int_equal(number_signed("-128", INT8_MIN, INT8_MAX, &negative), 0);
        assert_int_equal(negative, -128);
        assert_int_equal(number_signed("-129", INT8_MIN, INT8_MAX, &negative), -ERANGE);
        assert_int_equal(number_signed("128", INT8_MIN, INT8_MAX, &negative), -ERANGE);
        assert_int_equal(number_signed("-9223372036854775808", INT64_MIN, INT64_MAX, &negative), 0);
        assert_true(negative == INT64_MIN);
        assert_int_equal(number_signed("--1", -5, 5, &negative), -EINVAL);
}

static void floats_round_small_and_refuse_large(void **state) {
        double value;

        assert_int_equal(number_float("1e-3", 0, &value), 0);
        assert_true(value == 1e-3);
        assert_int_equal(number_float("1e39", 1, &value), -ERANGE);
        assert_int_equal(number_float("1e39", 0, &value), 0);
        assert_int_equal(number_float("1e-400", 0, &value), 0);
        assert_true(value == 0);
        assert_int_equal(number_float("-inf", 1, &value), 0);
        assert_true(isinf(value));
        assert_int_equal(number_float("nan", 0, &value), 0);
        assert_true(isnan(value));
        assert_int_equal(number_float("abc", 1, &value), -EINVAL);
        assert_int_equal(number_float(" 1", 1, &value), -EINVAL);
        assert_int_equal(number_float("", 1, &value), -EINVAL);
}

static void sizes_have_units(void **state) {
        uint64_t bytes;

        assert_int_equal(number_bytes("48K", UINT32_MAX, &bytes), 0);
        assert_int_equal(bytes, 49152);
        assert_int_equal(number_bytes("1m", UINT32_MAX, &bytes), 0);
        assert_int_equal(bytes, 1048576);
        assert_int_equal(number_bytes("4G", UINT32_MAX, &bytes), -ERANGE);
        assert_int_equal(number_bytes("4T", UINT32_MAX, &bytes), -EINVAL);
        assert_int_equal(number_bytes("4KB", UINT32_MAX, &bytes), -EINVAL);
        assert_int_equal(number_bytes("K", UINT32_MAX, &bytes), -EINVAL);
}

static void seconds_become_milliseconds_rounded_up(void **state) {
        uint32_t ms;

        assert_int_equal(number_ms("2", &ms), 0);
        assert_int_equal(ms, 2000);
        assert_int_equal(number_ms("0.0001", &ms), 0);
        assert_int_equal(ms, 1);
        assert_int_equal(number_ms("0", &ms), -ERANGE);
        assert_int_equal(number_ms("-1", &ms), -ERANGE);
        assert_int_equal(number_ms("nan", &ms), -ERANGE);
        assert_int_equal(number_ms("1e9", &ms), -ERANGE);
}

static void dims_are_one_to_three(void **state) {
        unsigned dims[3];

        assert_int_equal(number_dims("7", dims), 0);
        assert_memory_equal(dims, ((unsigned[]){7, 1, 1}), sizeof(dims));
        assert_int_equal(number_dims("7,8,9", dims), 0);
        assert_memory_equal(dims, ((unsigned[]){7, 8, 9}), sizeof(dims));

        assert_int_equal(number_dims("1,2,3,4", dims), -EINVAL);
        assert_int_equal(number_dims("1,", dims), -EINVAL);
        assert_int_equal(number_dims(",1", dims), -EINVAL);
        assert_int_equal(number_dims("", dims), -EINVAL);
        assert_int_equal(number_dims("1x2", dims), -EINVAL);
        assert_int_equal(number_dims("0", dims), -ERANGE);
        assert_int_equal(number_dims("4294967296", dims), -ERANGE);
        assert_memory_equal(dims, ((unsigned[]){7, 8, 9}), sizeof(dims));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_number_is_the_whole_text),
                cmocka_unit_test(decimal_and_hexadecimal_are_read_and_octal_is_not),
                cmocka_unit_test(what_does_not_fit_is_refused),
                cmocka_unit_test(floats_round_small_and_refuse_large),
                cmocka_unit_test(sizes_have_units),
                cmocka_unit_test(seconds_become_milliseconds_rounded_up),
                cmocka_unit_test(dims_are_one_to_three),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
