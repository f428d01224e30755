/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "crashes.h"

#define S 1000000000ull

static void some_at_once_cost_nothing(void **state) {
        Crashes crashes = {};

        for (unsigned i = 0; i < CRASHES_FREE; ++i) {
                crashes_add(&crashes, 100 * S);
                assert_int_equal(crashes_until(&crashes, 100 * S), 0);
        }
}

static void one_more_has_to_wait_and_then_one_at_a_time_goes(void **state) {
        Crashes crashes = {};
        uint64_t now_ns = 100 * S;

        for (unsigned i = 0; i < CRASHES_FREE; ++i)
                crashes_add(&crashes, now_ns);
        for (unsigned i = 1; i <= 50; ++i) {
                crashes_add(&crashes, now_ns);
                now_ns = crashes_until(&crashes, now_ns);
                assert_int_equal(now_ns, 100 * S + i * CRASHES_EVERY_NS);
                assert_int_equal(crashes_until(&crashes, now_ns), 0);
        }
}

static void after_a_while_all_is_forgotten(void **state) {
        Crashes crashes = {};

        for (unsigned i = 0; i < 2 * CRASHES_FREE; ++i)
                crashes_add(&crashes, 100 * S);
        assert_true(crashes_until(&crashes, 100 * S) > 0);
        for (unsigned i = 0; i < CRASHES_FREE; ++i)
                crashes_add(&crashes, 1000 * S);
        assert_int_equal(crashes_until(&crashes, 1000 * S), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(some_at_once_cost_nothing),
                cmocka_unit_test(one_more_has_to_wait_and_then_one_at_a_time_goes),
                cmocka_unit_test(after_a_while_all_is_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
