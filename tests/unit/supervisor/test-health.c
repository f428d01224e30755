/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <string.h>

#include "health.h"

#define S 1000000000ull

/* As its owner does: looks when one is due. Return: whether it was drained or came back. */
static bool check(Health *health, HealthFinding finding, uint64_t now_ns) {
        assert_true(health_wants_check(health, now_ns));
        health_begin_check(health, now_ns);
        assert_false(health_wants_check(health, now_ns));
        return health_end_check(health, finding, "found broken", now_ns);
}

static void a_word_alone_drains_nothing(void **state) {
        Health health = {};

        assert_false(health_wants_check(&health, 1 * S));
        health_doubt(&health, 1 * S);
        assert_true(health_takes_jobs(&health));
        assert_null(health_reason(&health));
        assert_false(check(&health, HEALTH_FOUND_WELL, 1 * S));
        assert_true(health_takes_jobs(&health));
        assert_false(health_wants_check(&health, 900 * S));
}

static void what_the_driver_says_needs_no_check_and_none_gives_it_back(void **state) {
        Health health = {};

        health_doubt(&health, 1 * S);
        health_begin_check(&health, 1 * S);
        assert_true(health_condemn(&health, "Xid 95", 2 * S));
        assert_false(health_condemn(&health, "Xid 154", 2 * S));
        assert_string_equal(health_reason(&health), "drained automatically: Xid 95");
        assert_false(health_end_check(&health, HEALTH_FOUND_WELL, "", 3 * S));
        assert_false(health_wants_check(&health, 9000 * S));
        assert_false(health_fault(&health, "Xid 48", 9000 * S));
        assert_false(health_takes_jobs(&health));

        assert_true(health_release(&health));
        assert_true(health_takes_jobs(&health));
        assert_false(health_wants_check(&health, 9000 * S));
        assert_true(health_condemn(&health, "Xid 79", 9000 * S));
}

static void a_check_that_finds_it_broken_drains_it_with_what_it_found(void **state) {
        Health health = {};

        health_doubt(&health, 1 * S);
        assert_true(check(&health, HEALTH_FOUND_BROKEN, 1 * S));
        assert_false(health_takes_jobs(&health));
        assert_string_equal(health_reason(&health), "drained automatically: found broken");
}

static void a_check_that_fails_is_repeated_and_decides_nothing(void **state) {
        Health health = {};

        health_doubt(&health, 1 * S);
        assert_false(check(&health, HEALTH_FOUND_NOTHING, 1 * S));
        assert_true(health_takes_jobs(&health));
        assert_false(health_wants_check(&health, 1 * S + HEALTH_CHECK_MIN_NS - 1));
        assert_true(check(&health, HEALTH_FOUND_BROKEN, 1 * S + HEALTH_CHECK_MIN_NS));
        assert_false(check(&health, HEALTH_FOUND_NOTHING, 60 * S));
        assert_false(health_takes_jobs(&health));
}

static void a_broken_device_is_checked_with_backoff_until_it_is_well(void **state) {
        uint64_t now_ns = 1 * S, delay_ns = HEALTH_CHECK_MIN_NS;
        Health health = {};

        health_doubt(&health, now_ns);
        check(&health, HEALTH_FOUND_BROKEN, now_ns);
        for (unsigned i = 0; i < 20; ++i) {
                assert_false(health_wants_check(&health, now_ns + delay_ns - 1));
                now_ns += delay_ns;
                assert_false(check(&health, HEALTH_FOUND_BROKEN, now_ns));
                delay_ns = MIN(2 * delay_ns, HEALTH_CHECK_MAX_NS);
        }
        now_ns += delay_ns;
        assert_true(check(&health, HEALTH_FOUND_WELL, now_ns));
        assert_true(health_takes_jobs(&health));
}

static void a_device_that_breaks_again_soon_is_checked_more_rarely(void **state) {
        Health health = {};

        health_doubt(&health, 1 * S);
        check(&health, HEALTH_FOUND_BROKEN, 1 * S);
        check(&health, HEALTH_FOUND_WELL, 10 * S);
        health_doubt(&health, 20 * S);
        check(&health, HEALTH_FOUND_BROKEN, 20 * S);
        assert_false(health_wants_check(&health, 20 * S + 2 * HEALTH_CHECK_MIN_NS - 1));
        check(&health, HEALTH_FOUND_WELL, 20 * S + 2 * HEALTH_CHECK_MIN_NS);

        health_doubt(&health, 5000 * S);
        check(&health, HEALTH_FOUND_BROKEN, 5000 * S);
        assert_true(health_wants_check(&health, 5000 * S + HEALTH_CHECK_MIN_NS));
}

static void faults_that_the_kernel_confirms_drain_it_whatever_checks_find(void **state) {
        Health health = {};

        for (unsigned i = 1; i < HEALTH_FAULTS_MAX; ++i)
                assert_false(health_fault(&health, "ECC", i * S));
        assert_true(health_takes_jobs(&health));
        assert_true(health_fault(&health, "ECC", 10 * S));
        assert_string_equal(health_reason(&health), "drained automatically: ECC");
        assert_false(health_fault(&health, "ECC", 11 * S));
        assert_true(check(&health, HEALTH_FOUND_WELL, 12 * S));
}

static void words_never_add_up(void **state) {
        Health health = {};

        for (unsigned i = 1; i < 1000; ++i) {
                health_doubt(&health, i * 10 * S);
                check(&health, HEALTH_FOUND_WELL, i * 10 * S);
                assert_true(health_takes_jobs(&health));
        }
}

/* However many users' workers say so. */
static void words_without_end_cause_one_check_in_each_interval(void **state) {
        uint64_t now_ns = 1 * S;
        Health health = {};
        unsigned n_checks = 0;

        for (; now_ns < 61 * S; now_ns += S / 100) {
                health_doubt(&health, now_ns);
                if (!health_wants_check(&health, now_ns))
                        continue;
                check(&health, HEALTH_FOUND_WELL, now_ns);
                n_checks++;
        }
        assert_int_equal(n_checks, 60 * S / HEALTH_CHECK_MIN_NS);
}

static void a_device_without_memory_is_not_broken(void **state) {
        Health health = {};

        health_doubt(&health, 1 * S);
        assert_false(check(&health, HEALTH_FOUND_FULL, 1 * S));
        assert_true(health_takes_jobs(&health));
        assert_false(health_wants_check(&health, 900 * S));

        health_doubt(&health, 900 * S);
        assert_true(check(&health, HEALTH_FOUND_BROKEN, 900 * S));
        assert_false(check(&health, HEALTH_FOUND_FULL, 910 * S));
        assert_false(health_takes_jobs(&health));
        assert_true(check(&health, HEALTH_FOUND_WELL, 920 * S));
}

static void faults_far_apart_do_not_add_up(void **state) {
        Health health = {};

        for (unsigned i = 1; i < 10 * HEALTH_FAULTS_MAX; ++i) {
                uint64_t now_ns = i * (HEALTH_WINDOW_NS + S);

                assert_false(health_fault(&health, "ECC", now_ns));
                if (i % 2)
                        assert_false(health_fault(&health, "ECC", now_ns));
        }
}

static void what_an_administrator_holds_no_check_gives_back(void **state) {
        Health health = {};

        health_hold(&health, "a new fan");
        assert_string_equal(health_reason(&health), "a new fan");
        health_doubt(&health, 1 * S);
        check(&health, HEALTH_FOUND_BROKEN, 1 * S);
        assert_string_equal(health_reason(&health), "a new fan");
        check(&health, HEALTH_FOUND_WELL, 10 * S);
        assert_false(health_takes_jobs(&health));
        assert_true(health_release(&health));
        assert_true(health_takes_jobs(&health));
        assert_false(health_release(&health));
}

static void an_administrator_gives_back_what_was_drained_by_itself(void **state) {
        Health health = {};

        health_doubt(&health, 1 * S);
        check(&health, HEALTH_FOUND_BROKEN, 1 * S);
        assert_true(health_release(&health));
        assert_true(health_takes_jobs(&health));
        assert_false(health_wants_check(&health, 900 * S));
}

static void a_long_reason_is_cut(void **state) {
        char reason[2 * HEALTH_REASON_MAX];
        Health health = {};

        memset(reason, 'x', sizeof(reason) - 1);
        reason[sizeof(reason) - 1] = '\0';
        health_hold(&health, reason);
        assert_int_equal(strlen(health_reason(&health)), HEALTH_REASON_MAX - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_word_alone_drains_nothing),
                cmocka_unit_test(what_the_driver_says_needs_no_check_and_none_gives_it_back),
                cmocka_unit_test(a_check_that_finds_it_broken_drains_it_with_what_it_found),
                cmocka_unit_test(a_check_that_fails_is_repeated_and_decides_nothing),
                cmocka_unit_test(a_broken_device_is_checked_with_backoff_until_it_is_well),
                cmocka_unit_test(a_device_that_breaks_again_soon_is_checked_more_rarely),
                cmocka_unit_test(faults_that_the_kernel_confirms_drain_it_whatever_checks_find),
                cmocka_unit_test(faults_far_apart_do_not_add_up),
                cmocka_unit_test(words_never_add_up),
                cmocka_unit_test(words_without_end_cause_one_check_in_each_interval),
                cmocka_unit_test(a_device_without_memory_is_not_broken),
                cmocka_unit_test(what_an_administrator_holds_no_check_gives_back),
                cmocka_unit_test(an_administrator_gives_back_what_was_drained_by_itself),
                cmocka_unit_test(a_long_reason_is_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
