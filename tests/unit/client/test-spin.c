/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spin, on a simulated clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/lib/base/spin.h"
#include "util/macro.h"

#define LIMIT_NS UINT64_C(100000)
#define LOOK_NS  UINT64_C(1000)

/* A wait of that length. Return: how long it looked. */
static uint64_t spin_wait(Spin *spin, uint64_t *now_ns, uint64_t wait_ns) {
        uint64_t begin_ns = *now_ns, spun_ns = 0;

        if (spin_begin(spin, *now_ns)) {
                do
                        *now_ns += LOOK_NS;
                while (spin_go_on(spin, *now_ns - begin_ns >= wait_ns, *now_ns));
                spun_ns = *now_ns - begin_ns;
        }
        *now_ns = begin_ns + MAX(spun_ns, wait_ns);
        spin_end(spin, *now_ns);
        return spun_ns;
}

/* A wait in which somebody else has the core for so long, from its beginning on. @found: its end is there then. */
static void lose_core(Spin *spin, uint64_t *now_ns, uint64_t gap_ns, bool found) {
        assert_true(spin_begin(spin, *now_ns));
        *now_ns += gap_ns;
        assert_false(spin_go_on(spin, found, *now_ns));
        spin_end(spin, *now_ns);
}

static void without_a_limit_nobody_spins(void **state) {
        Spin spin;

        spin_init(&spin, 0);
        assert_false(spin_begin(&spin, 5));
}

static void a_wait_spins_no_longer_than_the_limit(void **state) {
        uint64_t now_ns = 7;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        assert_int_equal(spin_wait(&spin, &now_ns, LIMIT_NS / 2), LIMIT_NS / 2);
        assert_int_equal(spin_wait(&spin, &now_ns, 10 * LIMIT_NS), LIMIT_NS);
}

static void who_waits_longer_than_the_limit_spins_less_and_less(void **state) {
        uint64_t now_ns = 7, before_ns, spun_ns = LIMIT_NS + 1;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        for (unsigned i = 0; i < 4; i++) {
                before_ns = spun_ns;
                spun_ns = spin_wait(&spin, &now_ns, 2 * LIMIT_NS);
                assert_true(spun_ns < before_ns);
        }
        for (unsigned i = 0; i < 20; i++)
                spun_ns = spin_wait(&spin, &now_ns, 2 * LIMIT_NS);
        assert_in_range(spun_ns, 1, LIMIT_NS / SPIN_LESS + LOOK_NS);
}

/* Waits just under the limit were slept through for ever once the budget was below them. */
static void after_one_short_wait_it_spins_in_full_again(void **state) {
        uint64_t now_ns = 7;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        for (unsigned i = 0; i < 20; i++)
                spin_wait(&spin, &now_ns, 2 * LIMIT_NS);
        assert_true(spin_wait(&spin, &now_ns, LIMIT_NS / 2) < LIMIT_NS / 2);
        assert_int_equal(spin_wait(&spin, &now_ns, LIMIT_NS / 2), LIMIT_NS / 2);
}

/* Ten thousand waits of 40 us in which one takes longer are spun through, that one is not. */
static void it_spins_about_as_long_as_the_waits_of_late(void **state) {
        uint64_t now_ns = 7, limit_ns = 50 * LIMIT_NS;
        Spin spin;

        spin_init(&spin, limit_ns);
        assert_int_equal(spin_wait(&spin, &now_ns, limit_ns / 2), LIMIT_NS);
        assert_int_equal(spin_wait(&spin, &now_ns, limit_ns / 2), limit_ns / 2);
        for (unsigned i = 0; i < 200; i++) /* so many in a slice of a GPU that two share */
                assert_int_equal(spin_wait(&spin, &now_ns, 13 * LOOK_NS), 13 * LOOK_NS);
        assert_int_equal(spin_wait(&spin, &now_ns, limit_ns / 2), limit_ns / 2);

        for (unsigned i = 0; i < 10000; i++)
                assert_int_equal(spin_wait(&spin, &now_ns, 40 * LOOK_NS), 40 * LOOK_NS);
        assert_int_equal(spin_wait(&spin, &now_ns, limit_ns / 2), LIMIT_NS);
}

/* A wait through which somebody else had the core says nothing about how long the next one takes,
 * whether its end was there then or not. */
static void who_lost_the_core_begins_as_at_first(void **state) {
        for (int found = 0; found < 2; found++) {
                uint64_t now_ns = 7, limit_ns = 50 * LIMIT_NS;
                Spin spin;

                spin_init(&spin, limit_ns);
                spin_wait(&spin, &now_ns, limit_ns / 2);
                lose_core(&spin, &now_ns, limit_ns / 2, found);
                spin.contention.is_busy = false;
                assert_int_equal(spin_wait(&spin, &now_ns, limit_ns / 2), LIMIT_NS);
        }
}

static void who_finds_its_end_then_spins_on(void **state) {
        uint64_t now_ns = 7;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        lose_core(&spin, &now_ns, SPIN_GAP_NS + 1, true);
        assert_true(spin_begin(&spin, now_ns));
}

static void who_loses_the_core_does_not_spin_until_the_machine_is_idle(void **state) {
        uint64_t now_ns = 7;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        lose_core(&spin, &now_ns, SPIN_GAP_NS + 1, false);
        assert_false(spin_begin(&spin, now_ns));
        now_ns += CONTENTION_COUNT_NS;
        contention_count(&spin.contention, 17, 16, now_ns);
        assert_false(spin_begin(&spin, now_ns));
        contention_count(&spin.contention, 16, 16, now_ns);
        assert_true(spin_begin(&spin, now_ns));
}

/* A program that computes took the core for each wait, and each wait was over then. */
static void who_loses_a_time_slice_does_not_spin_though_the_wait_is_over(void **state) {
        uint64_t now_ns = 7;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        lose_core(&spin, &now_ns, SPIN_SLICE_NS + 1, true);
        assert_false(spin_begin(&spin, now_ns));
}

/* A NumPy matrix product leaves BLAS threads spinning: a 47 us job took 2.2 ms. */
static void who_has_computed_keeps_its_core_for_a_moment(void **state) {
        uint64_t now_ns = 5 * SPIN_FRESH_NS;
        Spin spin;

        spin_init(&spin, 5 * LIMIT_NS);
        spin_begin(&spin, now_ns);
        assert_false(spin_may_yield(&spin));
        assert_true(spin_go_on(&spin, false, now_ns + SPIN_FIRST_NS / 2));
        assert_false(spin_may_yield(&spin));
        spin_go_on(&spin, false, now_ns + SPIN_FIRST_NS);
        assert_true(spin_may_yield(&spin));

        now_ns += SPIN_FIRST_NS;
        spin_end(&spin, now_ns);
        spin_begin(&spin, now_ns + SPIN_FRESH_NS - 1);
        assert_true(spin_may_yield(&spin)); /* between the jobs of a loop */
        spin_end(&spin, now_ns + SPIN_FRESH_NS);
        spin_begin(&spin, now_ns + 2 * SPIN_FRESH_NS);
        assert_false(spin_may_yield(&spin));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_limit_nobody_spins),
                cmocka_unit_test(a_wait_spins_no_longer_than_the_limit),
                cmocka_unit_test(who_waits_longer_than_the_limit_spins_less_and_less),
                cmocka_unit_test(after_one_short_wait_it_spins_in_full_again),
                cmocka_unit_test(it_spins_about_as_long_as_the_waits_of_late),
                cmocka_unit_test(who_lost_the_core_begins_as_at_first),
                cmocka_unit_test(who_finds_its_end_then_spins_on),
                cmocka_unit_test(who_loses_the_core_does_not_spin_until_the_machine_is_idle),
                cmocka_unit_test(who_loses_a_time_slice_does_not_spin_though_the_wait_is_over),
                cmocka_unit_test(who_has_computed_keeps_its_core_for_a_moment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
