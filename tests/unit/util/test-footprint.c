/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one user can make gpuqd take.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/config-keys.h"
#include "util/footprint.h"
#include "util/macro.h"

DEFINE_CLEANUP(Config, config_free)

static Config *defaults(void) {
        Config *config = calloc(1, sizeof(*config));

        assert_int_equal(config_key_set_defaults(config), 0);
        return config;
}

/* It was 350 GB. */
static void user_with_the_default_limits_takes_less_than_a_gigabyte(void **state) {
        _cleanup_(config_freep) Config *config = defaults();

        assert_true(footprint_sum(&config->limits) < 1000000000);
}

static void lines_add_up_to_the_sum(void **state) {
        _cleanup_(config_freep) Config *config = defaults();
        FootprintLine lines[FOOTPRINT_LINES];
        uint64_t sum = 0;

        footprint_lines(&config->limits, lines);
        for (size_t i = 0; i < FOOTPRINT_LINES; i++) {
                assert_non_null(lines[i].what);
                assert_true(!lines[i].key || config_key_find(lines[i].key, true));
                sum += lines[i].n_bytes;
        }
        assert_int_equal(sum, footprint_sum(&config->limits));
}

static void what_has_no_limit_has_no_sum(void **state) {
        _cleanup_(config_freep) Config *config = defaults();

        config->limits.queued_bytes = UINT64_MAX;
        assert_true(footprint_sum(&config->limits) == UINT64_MAX);
        config->limits.queued_bytes = 0;
        config->limits.modules = UINT64_MAX / 2;
        assert_true(footprint_sum(&config->limits) == UINT64_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(user_with_the_default_limits_takes_less_than_a_gigabyte),
                cmocka_unit_test(lines_add_up_to_the_sum),
                cmocka_unit_test(what_has_no_limit_has_no_sum),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
