/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "addresses.h"

#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

static int setup(void **state) {
        *state = calloc(1, sizeof(Addresses));
        return *state ? 0 : -1;
}

static int teardown(void **state) {
        free(*state);
        return 0;
}

static void test_memory_and_its_guards_have_a_place_of_their_own(void **state) {
        const uint64_t sizes[] = {1, 2 * MIB, 4 * MIB, 4 * MIB + 1, 100 * MIB, 1024 * MIB};
        uint64_t begins[6];

        for (size_t i = 0; i < 6; ++i) {
                begins[i] = addresses_take(*state, sizes[i]);
                assert_true(begins[i] >= 17 * TIB && begins[i] + sizes[i] <= 85 * TIB);
                assert_int_equal(begins[i] % (8 * MIB), 0);
                for (size_t k = 0; k < i; ++k)
                        assert_true(begins[i] + sizes[i] + 4 * MIB <= begins[k] ||
                                    begins[k] + sizes[k] + 4 * MIB <= begins[i]);
        }
}

static void test_what_is_given_back_is_taken_again(void **state) {
        uint64_t n = 0, last = 0, address;

        while ((address = addresses_take(*state, MIB))) {
                last = address;
                ++n;
        }
        assert_int_equal(n, ADDRESSES_PLACES);

        addresses_give(*state, last);
        assert_int_equal(addresses_take(*state, MIB), last);
        assert_int_equal(addresses_take(*state, MIB), 0);
        assert_true(addresses_take(*state, 100 * MIB) != 0); /* another size */
}

static void test_a_large_size_has_few_places(void **state) {
        for (int i = 0; i < 8; ++i)
                assert_true(addresses_take(*state, UINT64_C(300) << 30) != 0);
        assert_int_equal(addresses_take(*state, UINT64_C(300) << 30), 0);
        assert_int_equal(addresses_take(*state, UINT64_C(513) << 30), 0);
        assert_int_equal(addresses_take(*state, UINT64_MAX), 0);
}

static void test_a_restored_one_is_not_given_to_another(void **state) {
        uint64_t first = addresses_take(*state, MIB), second = addresses_take(*state, MIB);

        memset(*state, 0, sizeof(Addresses)); /* the next supervisor's */
        addresses_claim(*state, first);
        assert_int_equal(addresses_take(*state, MIB), second);
}

static void test_a_stale_pointer_finds_nothing_for_long(void **state) {
        uint64_t first = addresses_take(*state, MIB);

        addresses_give(*state, first);
        for (unsigned i = 1; i < ADDRESSES_PLACES; ++i)
                assert_true(addresses_take(*state, MIB) != first);
        assert_int_equal(addresses_take(*state, MIB), first);
}

static void test_foreign_addresses_change_nothing(void **state) {
        const uint64_t foreign[] = {0,        1,        17 * TIB - 8 * MIB, 17 * TIB + 1,
                                    85 * TIB, 18 * TIB, UINT64_MAX};

        for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); ++i) {
                addresses_claim(*state, foreign[i]);
                addresses_give(*state, foreign[i]);
        }
        assert_int_equal(addresses_take(*state, MIB), 17 * TIB);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        test_memory_and_its_guards_have_a_place_of_their_own, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_given_back_is_taken_again, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_large_size_has_few_places, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_restored_one_is_not_given_to_another, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_stale_pointer_finds_nothing_for_long, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_foreign_addresses_change_nothing, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
