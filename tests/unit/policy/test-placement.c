/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000ull

static void a_job_of_known_duration_has_its_rest_left(void **state) {
        assert_int_equal(placement_left_ns(100 * MS, 0, true), 100 * MS);
        assert_int_equal(placement_left_ns(100 * MS, 90 * MS, true), 10 * MS);
        assert_int_equal(placement_left_ns(100 * MS, 100 * MS, true), 0);
}

static void a_late_job_will_be_later_still(void **state) {
        assert_int_equal(placement_left_ns(MS, 1000 * MS, true), 999 * MS);
}

static void a_job_of_unknown_duration_takes_as_long_again(void **state) {
        assert_int_equal(placement_left_ns(26 * MS, 0, false), 26 * MS);
        assert_int_equal(placement_left_ns(26 * MS, 20 * MS, false), 26 * MS);
        assert_int_equal(placement_left_ns(26 * MS, 5000 * MS, false), 5000 * MS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_of_known_duration_has_its_rest_left),
                cmocka_unit_test(a_late_job_will_be_later_still),
                cmocka_unit_test(a_job_of_unknown_duration_takes_as_long_again),
        };

        return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
