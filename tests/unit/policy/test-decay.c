/* SPDX-License-Identifier: Apache-2.0 */
#include "decay.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S         1000000000ull
#define HALF_LIFE (60 * S)

static void assert_near(double a, double b, double part) {
        if (fabs(a - b) > fabs(b) * part)
                fail_msg("%g is not within %g %% of %g", a, part * 100, b);
}

static void half_is_gone_after_a_half_life(void **state) {
        Decay decay = {0};

        decay_add(&decay, HALF_LIFE, 100, 5 * S);
        assert_near(decay_sum(&decay, HALF_LIFE, 5 * S), 100, 0);
        assert_near(decay_sum(&decay, HALF_LIFE, 5 * S + HALF_LIFE), 50, 1e-9);
        assert_near(decay_sum(&decay, HALF_LIFE, 5 * S + 3 * HALF_LIFE), 12.5, 1e-9);
}

/* What it costs to be brought up to date only now and then. */
static void many_small_amounts_are_right_to_one_in_a_thousand(void **state) {
        double exact = 0, factor = exp2(-1e6 / (double)HALF_LIFE);
        Decay decay = {0};

        for (uint64_t now_ns = 0; now_ns < 5 * HALF_LIFE; now_ns += 1000000) {
                exact = exact * factor + 3;
                decay_add(&decay, HALF_LIFE, 3, now_ns);
        }
        assert_near(decay_sum(&decay, HALF_LIFE, 5 * HALF_LIFE), exact, 1e-3);
}

static void a_clock_that_goes_back_does_no_harm(void **state) {
        Decay decay = {0};

        decay_add(&decay, HALF_LIFE, 100, 50 * S);
        decay_add(&decay, HALF_LIFE, 100, 40 * S);
        assert_near(decay_sum(&decay, HALF_LIFE, 30 * S), 200, 0);
}

static void without_a_half_life_nothing_is_remembered(void **state) {
        Decay decay = {0};

        decay_add(&decay, 0, 100, S);
        assert_true(decay_sum(&decay, 0, S) == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(half_is_gone_after_a_half_life),
                cmocka_unit_test(many_small_amounts_are_right_to_one_in_a_thousand),
                cmocka_unit_test(a_clock_that_goes_back_does_no_harm),
                cmocka_unit_test(without_a_half_life_nothing_is_remembered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
