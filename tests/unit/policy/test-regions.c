/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions.h"

#define MIB   (UINT64_C(1) << 20)
#define GIB   (UINT64_C(1) << 30)
#define ALICE 1000
#define BOB   1001

static int setup(void **state) {
        *state = calloc(1, sizeof(Regions));
        return *state ? 0 : -1;
}

static int teardown(void **state) {
        free(*state);
        return 0;
}

static void users_never_share_a_region(void **state) {
        const uint64_t sizes[] = {1, 4 * MIB, 4 * MIB + 1, 100 * MIB, 80 * GIB};
        uint64_t alice, bob, region = 0;

        for (size_t i = 0; i < 5; ++i) {
                alice = regions_take(*state, sizes[i], ALICE);
                bob = regions_take(*state, sizes[i], BOB);
                assert_true(fixed_region_is(alice) && fixed_region_is(bob));
                assert_int_not_equal(fixed_region(alice), fixed_region(bob));
                assert_int_equal(fixed_region(alice), fixed_region(alice + sizes[i] - 1));
                if (i > 0)
                        assert_int_equal(fixed_region(alice), region);
                region = fixed_region(alice);
        }
}

static void memory_has_guards_around_it(void **state) {
        const uint64_t sizes[] = {1, 2 * MIB, 4 * MIB, 4 * MIB + 1, 100 * MIB, 1024 * MIB};
        uint64_t begins[6];

        for (size_t i = 0; i < 6; ++i) {
                begins[i] = regions_take(*state, sizes[i], ALICE);
                for (size_t k = 0; k < i; ++k)
                        assert_true(begins[i] + sizes[i] + 4 * MIB <= begins[k] ||
                                    begins[k] + sizes[k] + 4 * MIB <= begins[i]);
        }
}

static void what_is_given_back_is_taken_again_but_late(void **state) {
        uint64_t first = regions_take(*state, 300 * GIB, ALICE), second, third;

        regions_give(*state, first, 300 * GIB);
        second = regions_take(*state, 300 * GIB, ALICE);
        assert_int_not_equal(first, second);
        third = regions_take(*state, 300 * GIB, ALICE);
        assert_true(third != 0 && third != second);
        assert_true(regions_take(*state, 200 * GIB, ALICE) != 0);
        assert_int_equal(regions_take(*state, 300 * GIB, ALICE), 0);
        regions_give(*state, second, 300 * GIB);
        assert_true(regions_take(*state, 300 * GIB, ALICE) != 0);
        assert_int_equal(regions_take(*state, 2048 * GIB, BOB), 0);
        assert_int_equal(regions_take(*state, UINT64_MAX, BOB), 0);
}

static void a_region_without_memory_is_anybodys(void **state) {
        uint64_t address;

        for (uint32_t user = 0; user < FIXED_REGIONS; ++user)
                assert_true(regions_take(*state, MIB, user) != 0);
        assert_int_equal(regions_take(*state, MIB, 5000), 0);
        address = regions_take(*state, MIB, 7);
        regions_give(*state, address, MIB);
        assert_int_equal(regions_take(*state, MIB, 5000), 0);
        regions_give(*state, FIXED_RANGE_BEGIN + 7 * FIXED_REGION_BYTES + 4 * MIB, MIB);
        assert_int_equal(fixed_region(regions_take(*state, MIB, 5000)), 7);
}

static void restored_memory_keeps_its_region(void **state) {
        Regions *before = *state;
        _Alignas(Regions) static char memory[sizeof(Regions)];
        Regions *after = (Regions *)memory;
        uint64_t alice = regions_take(before, MIB, ALICE), bob = regions_take(before, MIB, BOB);

        regions_claim(after, bob, MIB, BOB);
        regions_claim(after, alice, MIB, ALICE);
        assert_int_equal(fixed_region(regions_take(after, MIB, BOB)), fixed_region(bob));
        assert_int_equal(fixed_region(regions_take(after, MIB, ALICE)), fixed_region(alice));
        assert_int_not_equal(regions_take(after, MIB, ALICE), alice);
}

static void memory_from_before_the_fence_blocks_a_region(void **state) {
        uint64_t old = FIXED_RANGE_BEGIN + 16 * MIB;

        regions_block(*state, old, 1);
        regions_block(*state, 0, 1);
        assert_int_equal(fixed_region(regions_take(*state, MIB, ALICE)), 1);
        regions_block(*state, old, -1);
        assert_int_equal(fixed_region(regions_take(*state, MIB, BOB)), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(users_never_share_a_region),
                TEST(memory_has_guards_around_it),
                TEST(what_is_given_back_is_taken_again_but_late),
                TEST(a_region_without_memory_is_anybodys),
                TEST(restored_memory_keeps_its_region),
                TEST(memory_from_before_the_fence_blocks_a_region),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
