/* SPDX-License-Identifier: Apache-2.0 */
#include "util/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static void it_spins_for_a_while_after_an_event_then_naps_longer_and_longer(void **state) {
        uint64_t now_ns = 0, nap_ns, before_ns = 0;
        Pace pace;

        pace_init(&pace, false);
        pace_event(&pace, now_ns);
        assert_int_equal(pace_next(&pace, false, now_ns + 900 * US), 0);

        now_ns += MS;
        for (int i = 0; i < 400; ++i) {
                nap_ns = pace_next(&pace, false, now_ns);
                assert_true(nap_ns >= before_ns);
                assert_true(nap_ns > 0 && nap_ns <= MS);
                assert_true(nap_ns <= now_ns / 64); /* so late is what ended meanwhile seen */
                now_ns += nap_ns;
                before_ns = nap_ns;
        }
        assert_int_equal(before_ns, MS);
        pace_event(&pace, now_ns);
        assert_int_equal(pace_next(&pace, false, now_ns), 0);
}

static void with_the_cpu_driver_it_leaves_the_cores_to_the_kernels(void **state) {
        Pace pace;

        pace_init(&pace, true);
        pace_event(&pace, 0);
        assert_true(pace_next(&pace, false, 50 * US) > 0);
}

static void where_the_cores_are_wanted_it_naps_soon_and_longer(void **state) {
        Pace pace;

        pace_init(&pace, false);
        pace_event(&pace, 0);
        assert_int_equal(pace_next(&pace, true, 10 * US), 0); /* the shortest jobs end by then */
        assert_true(pace_next(&pace, true, 30 * US) > 0);
        assert_int_equal(pace_next(&pace, false, 30 * US), 0);
        assert_true(pace_next(&pace, true, 4 * MS) > pace_next(&pace, false, 4 * MS));
}

static void while_jobs_are_in_flight_it_looks_as_long_as_it_may(void **state) {
        Pace pace;

        pace_init(&pace, false);
        pace_event(&pace, 7);
        assert_true(pace_may_sleep(&pace, 0, true, 7));
        assert_false(pace_may_sleep(&pace, 5 * MS, true, 5 * MS + 6));
        assert_true(pace_may_sleep(&pace, 5 * MS, true, 5 * MS + 7));
}

static void with_none_in_flight_it_looks_for_a_moment(void **state) {
        Pace pace;

        pace_init(&pace, false);
        pace_event(&pace, 7);
        assert_false(pace_may_sleep(&pace, 5 * MS, false, 100 * US + 6));
        assert_true(pace_may_sleep(&pace, 5 * MS, false, 100 * US + 7));
        assert_true(pace_may_sleep(&pace, 50 * US, false, 50 * US + 7));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_spins_for_a_while_after_an_event_then_naps_longer_and_longer),
                cmocka_unit_test(with_the_cpu_driver_it_leaves_the_cores_to_the_kernels),
                cmocka_unit_test(where_the_cores_are_wanted_it_naps_soon_and_longer),
                cmocka_unit_test(while_jobs_are_in_flight_it_looks_as_long_as_it_may),
                cmocka_unit_test(with_none_in_flight_it_looks_for_a_moment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
