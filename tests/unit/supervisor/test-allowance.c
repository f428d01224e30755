/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "allowance.h"

#define S 1000000000ull

static const AllowanceRule rule = {
        .n_free = 8, .every_ns = 1 * S, .most_ns = 4 * S, .forget_ns = 10 * S};
static const AllowanceRule none_free = {
        .every_ns = 2 * S, .most_ns = 600 * S, .forget_ns = 600 * S};

static void some_at_once_cost_nothing(void **state) {
        Allowance allowance = {};

        assert_int_equal(allowance_until(&allowance, &rule, 100 * S), 0);
        for (unsigned i = 0; i < rule.n_free; ++i) {
                allowance_use(&allowance, &rule, 100 * S);
                assert_int_equal(allowance_until(&allowance, &rule, 100 * S), 0);
        }
}

static void each_one_more_waits_twice_as_long_up_to_a_limit(void **state) {
        const uint64_t waits[] = {1 * S, 2 * S, 4 * S, 4 * S, 4 * S};
        uint64_t now_ns = 100 * S, until_ns;
        Allowance allowance = {};

        for (unsigned i = 0; i < rule.n_free; ++i)
                allowance_use(&allowance, &rule, now_ns);
        for (unsigned i = 0; i < ARRAY_SIZE(waits); ++i) {
                allowance_use(&allowance, &rule, now_ns);
                until_ns = allowance_until(&allowance, &rule, now_ns);
                assert_int_equal(until_ns - now_ns, waits[i]);
                now_ns = until_ns;
                assert_int_equal(allowance_until(&allowance, &rule, now_ns), 0);
        }
}

static void now_and_then_never_waits(void **state) {
        Allowance allowance = {};

        for (unsigned i = 0; i < 1000; ++i) {
                allowance_use(&allowance, &rule, (100 + i) * S);
                assert_int_equal(allowance_until(&allowance, &rule, (100 + i) * S), 0);
        }
}

static void after_a_quiet_time_all_is_forgotten(void **state) {
        Allowance allowance = {};

        for (unsigned i = 0; i < 3 * rule.n_free; ++i)
                allowance_use(&allowance, &rule, 100 * S);
        assert_true(allowance_until(&allowance, &rule, 100 * S) > 0);
        for (unsigned i = 0; i < rule.n_free; ++i)
                allowance_use(&allowance, &rule, 1000 * S);
        assert_int_equal(allowance_until(&allowance, &rule, 1000 * S), 0);
}

/* Used whenever it may be: logarithmically often in the time until the limit. */
static void without_free_ones_it_is_used_ever_more_rarely(void **state) {
        uint64_t now_ns = 100 * S;
        Allowance allowance = {};
        unsigned n = 0;

        for (; now_ns < 700 * S; ++n) {
                allowance_use(&allowance, &none_free, now_ns);
                now_ns = allowance_until(&allowance, &none_free, now_ns);
        }
        assert_in_range(n, 8, 10);
        for (unsigned i = 0; i < 100; ++i)
                allowance_use(&allowance, &none_free, now_ns);
        assert_true(allowance_until(&allowance, &none_free, now_ns) <= now_ns + 101 * 600 * S);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(some_at_once_cost_nothing),
                cmocka_unit_test(each_one_more_waits_twice_as_long_up_to_a_limit),
                cmocka_unit_test(now_and_then_never_waits),
                cmocka_unit_test(after_a_quiet_time_all_is_forgotten),
                cmocka_unit_test(without_free_ones_it_is_used_ever_more_rarely),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
