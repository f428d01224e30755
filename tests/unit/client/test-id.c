/* SPDX-License-Identifier: Apache-2.0 */

#include "support.h"

static uint64_t parsed(const char *text) {
        uint64_t id = 0;

        assert_ok(gpuq_id_parse(text, &id));
        return id;
}

static void id_is_written_as_session_and_number(void **state) {
        char text[24];

        assert_string_equal(gpuq_id_format(UINT64_C(12) << 32 | 3, text), "12.3");
        assert_string_equal(gpuq_id_format(UINT64_MAX, text), "4294967295.4294967295");
}

static void id_is_read_in_both_ways(void **state) {
        assert_int_equal(parsed("12.3"), UINT64_C(12) << 32 | 3);
        assert_int_equal(parsed("51539607555"), UINT64_C(12) << 32 | 3);
        assert_int_equal(parsed("0"), 0);
        assert_true(parsed("4294967295.4294967295") == UINT64_MAX);
        assert_true(parsed("18446744073709551615") == UINT64_MAX);
}

static void id_that_is_none_is_refused(void **state) {
        static const char *const wrong[] = {
                "",
                ".",
                "1.",
                ".1",
                "1.2.3",
                "1.2 ",
                " 1.2",
                "-1",
                "+1",
                "1.-2",
                "0x10",
                "a",
                "1.b",
                "4294967296.1",
                "1.4294967296",
                "18446744073709551616",
                "99999999999999999999",
        };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                uint64_t id = 42;

                assert_int_equal(gpuq_id_parse(wrong[i], &id), GPUQ_E_INVALID);
                assert_int_equal(id, 42);
        }
        assert_text("99999999999999999999");
}

static void every_error_has_its_name(void **state) {
        assert_string_equal(gpuq_error_name(0), "GPUQ_OK");
        for (int error = GPUQ_E_PROTOCOL; error >= GPUQ_E_INTERNAL; error--)
                assert_memory_equal(gpuq_error_name(error), "GPUQ_E_", 7);
        for (int error = GPUQ_E_CONNECT; error >= GPUQ_E_SYSTEM; error--)
                assert_memory_equal(gpuq_error_name(error), "GPUQ_E_", 7);
        assert_non_null(gpuq_error_name(-1234));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(id_is_written_as_session_and_number),
                cmocka_unit_test(id_is_read_in_both_ways),
                cmocka_unit_test(id_that_is_none_is_refused),
                cmocka_unit_test(every_error_has_its_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
