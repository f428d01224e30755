/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/quiet.h"

#define START_NS UINT64_C(1000000000)

static void it_is_quiet_until_then(void **state) {
        Quiet quiet = {0};

        assert_false(quiet_is(&quiet, START_NS));
        quiet_ask(&quiet, START_NS + 1000, START_NS);
        assert_true(quiet_is(&quiet, START_NS + 999));
        assert_false(quiet_is(&quiet, START_NS + 1000));
}

static void it_ends_early_and_the_moment_goes_on(void **state) {
        Quiet quiet = {0};

        quiet_ask(&quiet, START_NS + 1000, START_NS);
        quiet_end(&quiet);
        assert_false(quiet_is(&quiet, START_NS + 1));
        quiet_ask(&quiet, START_NS + 2000, START_NS + 1);
        assert_true(quiet_is(&quiet, START_NS + 1999));
}

static void nobody_has_it_for_longer_than_the_moment(void **state) {
        Quiet quiet = {0};

        quiet_ask(&quiet, START_NS + 100 * QUIET_NS, START_NS);
        assert_true(quiet_is(&quiet, START_NS + QUIET_NS - 1));
        assert_false(quiet_is(&quiet, START_NS + QUIET_NS));
}

/* Each kernel and size class could ask for a moment of its own, and many did one after the other. */
static void many_who_ask_get_a_twenty_fifth_of_the_time(void **state) {
        enum { STEPS = 100000 };
        const uint64_t step_ns = QUIET_NS / 20;
        Quiet quiet = {0};
        unsigned n_quiet = 0;

        for (unsigned i = 0; i < STEPS; ++i) {
                uint64_t now_ns = START_NS + i * step_ns;

                quiet_ask(&quiet, now_ns + QUIET_NS, now_ns);
                n_quiet += quiet_is(&quiet, now_ns);
        }
        assert_in_range(n_quiet, STEPS / 50, STEPS / 25);
}

static void after_the_gap_it_may_be_again(void **state) {
        Quiet quiet = {0};

        quiet_ask(&quiet, START_NS + QUIET_NS, START_NS);
        assert_true(quiet_may_be(&quiet, START_NS + QUIET_NS - 1));
        assert_false(quiet_may_be(&quiet, START_NS + QUIET_NS));
        assert_false(quiet_may_be(&quiet, START_NS + QUIET_NS + QUIET_GAP_NS - 1));
        assert_true(quiet_may_be(&quiet, START_NS + QUIET_NS + QUIET_GAP_NS));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_quiet_until_then),
                cmocka_unit_test(it_ends_early_and_the_moment_goes_on),
                cmocka_unit_test(nobody_has_it_for_longer_than_the_moment),
                cmocka_unit_test(many_who_ask_get_a_twenty_fifth_of_the_time),
                cmocka_unit_test(after_the_gap_it_may_be_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
