/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spin, on a simulated clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/lib/spin.h"

#define LIMIT_NS UINT64_C(100000)
#define LOOK_NS  UINT64_C(1000)

/* Return: how long it looked in vain. */
static uint64_t spin_in_vain(Spin *spin, uint64_t *now_ns) {
        uint64_t begin_ns = *now_ns;

        if (!spin_begin(spin, *now_ns))
                return 0;
        do
                *now_ns += LOOK_NS;
        while (spin_go_on(spin, *now_ns));
        spin_end(spin, false, *now_ns);
        return *now_ns - begin_ns;
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
        assert_int_equal(spin_in_vain(&spin, &now_ns), LIMIT_NS);
}

static void who_looks_in_vain_looks_less_and_less(void **state) {
        uint64_t now_ns = 7, before_ns, spun_ns = LIMIT_NS;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        spin_in_vain(&spin, &now_ns);
        for (unsigned i = 0; i < 3; i++) {
                before_ns = spun_ns;
                spun_ns = spin_in_vain(&spin, &now_ns);
                assert_true(spun_ns < before_ns);
        }
        for (unsigned i = 0; i < 20; i++)
                spun_ns = spin_in_vain(&spin, &now_ns);
        assert_in_range(spun_ns, 1, LIMIT_NS / SPIN_LESS + LOOK_NS);

        spin_begin(&spin, now_ns);
        spin_end(&spin, true, now_ns);
        assert_int_equal(spin_in_vain(&spin, &now_ns), LIMIT_NS);
}

static void who_loses_the_core_does_not_spin_for_a_while(void **state) {
        uint64_t now_ns = 7;
        Spin spin;

        spin_init(&spin, LIMIT_NS);
        assert_true(spin_begin(&spin, now_ns));
        now_ns += SPIN_GAP_NS + 1;
        assert_false(spin_go_on(&spin, now_ns));
        spin_end(&spin, false, now_ns);
        assert_false(spin_begin(&spin, now_ns));
        assert_false(spin_begin(&spin, now_ns + SPIN_PAUSE_NS - 1));
        assert_true(spin_begin(&spin, now_ns + SPIN_PAUSE_NS));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_limit_nobody_spins),
                cmocka_unit_test(a_wait_spins_no_longer_than_the_limit),
                cmocka_unit_test(who_looks_in_vain_looks_less_and_less),
                cmocka_unit_test(who_loses_the_core_does_not_spin_for_a_while),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
