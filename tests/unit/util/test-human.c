/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/human.h"

static void sizes_have_three_figures(void **state) {
        assert_string_equal(human_bytes(0).text, "0 B");
        assert_string_equal(human_bytes(1023).text, "1023 B");
        assert_string_equal(human_bytes(1536).text, "1.50 KiB");
        assert_string_equal(human_bytes(1048575).text, "1.00 MiB");
        assert_string_equal(human_bytes(150000000000).text, "140 GiB");
        assert_string_equal(human_bytes(UINT64_MAX).text, "16.0 EiB");
}

static void times_go_from_nanoseconds_to_days(void **state) {
        assert_string_equal(human_ns(0).text, "0 s");
        assert_string_equal(human_ns(12).text, "12.0 ns");
        assert_string_equal(human_ns(12300).text, "12.3 us");
        assert_string_equal(human_ns(999499).text, "999 us");
        assert_string_equal(human_ns(999999).text, "1.00 ms");
        assert_string_equal(human_us(1230000).text, "1.23 s");
        assert_string_equal(human_us(200000000).text, "3m 20s");
        assert_string_equal(human_us(3660000000).text, "1h 01m");
        assert_string_equal(human_us(183600000000).text, "2d 03h");
        assert_string_equal(human_us(UINT64_MAX).text, "213503982d 08h");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sizes_have_three_figures),
                cmocka_unit_test(times_go_from_nanoseconds_to_days),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
