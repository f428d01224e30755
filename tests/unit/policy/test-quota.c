/* SPDX-License-Identifier: Apache-2.0 */
#include "quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define CAPACITY 65536u
#define PART     (CAPACITY / QUOTA_PARTS)
#define USERS    64u

/* Takes one by one until it is refused. Return: what the user holds then. */
static uint64_t take_all(Quota *quota, uint64_t held) {
        while (quota_take(quota, held, 1))
                held++;
        return held;
}

static void what_has_no_end_is_not_divided(void **state) {
        Quota quota = {0};

        assert_true(quota_take(&quota, 0, UINT64_MAX));
        assert_true(quota_most(&quota, 0) == UINT64_MAX);
        quota_give(&quota, UINT64_MAX, UINT64_MAX);
}

static void one_user_gets_a_quarter(void **state) {
        Quota quota;

        quota_init(&quota, CAPACITY);
        assert_int_equal(quota_most(&quota, 0), CAPACITY / 4 + PART);
        assert_int_equal(take_all(&quota, 0), CAPACITY / 4 + PART);
        assert_false(quota_take(&quota, CAPACITY / 4 + PART, 1));
        assert_true(quota_take(&quota, 0, 1)); /* somebody else */
}

static void one_user_gets_nearly_half_of_what_is_open(void **state) {
        uint64_t held[64], sum = 0;
        Quota quota;

        quota_init_open(&quota, CAPACITY);
        assert_int_equal(quota_most(&quota, 0), CAPACITY * 7 / 16 + CAPACITY / QUOTA_OPEN_PARTS);
        for (unsigned i = 0; i < 63; ++i) {
                held[i] = take_all(&quota, 0);
                sum += held[i];
        }
        assert_true(sum <= CAPACITY);
        assert_true(held[0] > CAPACITY * 7 / 16);
        assert_true(quota_most(&quota, 0) >= CAPACITY / QUOTA_OPEN_PARTS);
        for (unsigned i = 0; i < 63; ++i)
                quota_give(&quota, held[i], held[i]);
        assert_int_equal(quota.taken, 0);
        assert_int_equal(quota.open, 0);
}

static void each_greedy_user_leaves_half_of_the_rest(void **state) {
        uint64_t before = UINT64_MAX;
        Quota quota;

        quota_init(&quota, CAPACITY);
        for (unsigned i = 0; i < 8; ++i) {
                uint64_t held = take_all(&quota, 0);

                assert_true(held < before);
                assert_in_range(held, PART + CAPACITY / 4 / (1u << i),
                                PART + CAPACITY / 4 / (1u << i) + 1);
                before = held;
        }
}

static void whatever_others_take_a_user_has_the_guaranteed_part(void **state) {
        Quota quota;

        quota_init(&quota, CAPACITY);
        for (unsigned i = 0; i + 1 < USERS; ++i)
                take_all(&quota, 0);
        assert_true(take_all(&quota, 0) >= PART);
        assert_true(quota.taken <= CAPACITY);
}

static void more_users_than_parts_never_exceed_the_capacity(void **state) {
        Quota quota;

        quota_init(&quota, CAPACITY);
        for (unsigned i = 0; i < 10 * USERS; ++i)
                take_all(&quota, 0);
        assert_int_equal(quota.taken, CAPACITY);
        assert_false(quota_take(&quota, 0, 1));
}

static void what_is_given_back_can_be_taken_again(void **state) {
        uint64_t held[USERS] = {0}, sum = 0;
        Quota quota;

        srand(7);
        quota_init(&quota, CAPACITY);
        for (unsigned i = 0; i < 1000000; ++i) {
                uint64_t *user = &held[(unsigned)rand() % USERS];
                uint64_t amount = (uint64_t)rand() % 2000;

                if (rand() % 2) {
                        amount = amount < *user ? amount : *user;
                        quota_give(&quota, *user, amount);
                        *user -= amount;
                } else if (quota_take(&quota, *user, amount)) {
                        *user += amount;
                } else {
                        assert_true(*user + amount > PART); /* that much is guaranteed */
                }
        }
        for (unsigned i = 0; i < USERS; ++i)
                sum += held[i];
        assert_int_equal(quota.taken, sum);
        for (unsigned i = 0; i < USERS; ++i)
                quota_give(&quota, held[i], held[i]);
        assert_int_equal(quota.taken, 0);
        assert_int_equal(quota.open, 0);
}

static void an_amount_beyond_all_is_refused(void **state) {
        Quota quota;

        quota_init(&quota, CAPACITY);
        assert_false(quota_take(&quota, 0, CAPACITY));
        assert_false(quota_take(&quota, 0, UINT64_MAX));
        assert_true(quota_take(&quota, 0, 10));
        assert_false(quota_take(&quota, 10, UINT64_MAX));
        assert_int_equal(quota.taken, 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_has_no_end_is_not_divided),
                cmocka_unit_test(one_user_gets_a_quarter),
                cmocka_unit_test(one_user_gets_nearly_half_of_what_is_open),
                cmocka_unit_test(each_greedy_user_leaves_half_of_the_rest),
                cmocka_unit_test(whatever_others_take_a_user_has_the_guaranteed_part),
                cmocka_unit_test(more_users_than_parts_never_exceed_the_capacity),
                cmocka_unit_test(what_is_given_back_can_be_taken_again),
                cmocka_unit_test(an_amount_beyond_all_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
