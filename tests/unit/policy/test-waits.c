/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy.h"

#define SECOND_NS 1000000000ull
#define BEGIN_NS  (1000 * SECOND_NS)

static uint64_t n_counted(const Waits *waits, uint64_t now_ns) {
        Sketch sketch;
        uint64_t n = 0;

        if (!waits_read(waits, now_ns, &sketch))
                return 0;
        for (size_t i = 0; i < SKETCH_CLASSES; ++i)
                n += sketch.counts[i];
        return n;
}

static void assert_about(uint64_t us, uint64_t expected_us) {
        assert_in_range(us, expected_us * 85 / 100, expected_us * 115 / 100);
}

static void the_median_and_the_slowest_of_a_hundred(void **state) {
        Waits waits = {};
        Sketch all;

        for (uint64_t i = 1; i <= 1000; ++i)
                waits_add(&waits, i * 1000, BEGIN_NS + i);
        assert_true(waits_read(&waits, BEGIN_NS + SECOND_NS, &all));
        assert_about(sketch_quantile(&all, 0.5), 500000);
        assert_about(sketch_quantile(&all, 0.99), 990000);
}

static void what_is_older_than_a_minute_is_forgotten(void **state) {
        Waits waits = {};

        assert_int_equal(n_counted(&waits, BEGIN_NS), 0);
        waits_add(&waits, 5, BEGIN_NS);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 29 * SECOND_NS), 1);
        waits_add(&waits, 7, BEGIN_NS + 40 * SECOND_NS);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 59 * SECOND_NS), 2);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 61 * SECOND_NS), 1);
        waits_add(&waits, 7, BEGIN_NS + 61 * SECOND_NS);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 61 * SECOND_NS), 2);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 121 * SECOND_NS), 0);
}

static void after_a_long_pause_it_begins_anew(void **state) {
        Waits waits = {};

        waits_add(&waits, 5, BEGIN_NS);
        waits_add(&waits, 6, BEGIN_NS + 1000 * SECOND_NS);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 1000 * SECOND_NS), 1);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 1059 * SECOND_NS), 1);
        assert_int_equal(n_counted(&waits, BEGIN_NS + 1060 * SECOND_NS), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_median_and_the_slowest_of_a_hundred),
                cmocka_unit_test(what_is_older_than_a_minute_is_forgotten),
                cmocka_unit_test(after_a_long_pause_it_begins_anew),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
