/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When memory goes back to the system.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "trim.h"

#define GIB    (1ull << 30)
#define SECOND 1000000000ull

static void it_is_given_back_after_a_peak_once(void **state) {
        Trim trim = {};

        assert_false(trim_tick(&trim, 0, false, SECOND));
        assert_false(trim_tick(&trim, GIB, false, 2 * SECOND));
        assert_true(trim_tick(&trim, 0, false, 3 * SECOND));
        assert_false(trim_tick(&trim, 0, false, 30 * SECOND));
}

static void not_while_it_is_busy(void **state) {
        Trim trim = {};

        assert_false(trim_tick(&trim, GIB, true, SECOND));
        for (unsigned i = 2; i < 100; ++i)
                assert_false(trim_tick(&trim, 0, true, i * SECOND));
        assert_true(trim_tick(&trim, 0, false, 100 * SECOND));
}

static void not_too_often(void **state) {
        Trim trim = {};

        for (uint64_t now = SECOND; now < 61 * SECOND; now += SECOND / 4) {
                (void)trim_tick(&trim, GIB, false, now);
                (void)trim_tick(&trim, 0, false, now);
        }
        assert_in_range(trim.n_done, 10, 12);
}

static void not_for_a_little(void **state) {
        Trim trim = {};

        assert_false(trim_tick(&trim, TRIM_LEAST - 1, false, SECOND));
        assert_false(trim_tick(&trim, 0, false, 2 * SECOND));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_given_back_after_a_peak_once),
                cmocka_unit_test(not_while_it_is_busy),
                cmocka_unit_test(not_too_often),
                cmocka_unit_test(not_for_a_little),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
