/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accesses of a job with many buffers, made few.
 */
#include "order_ranges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/macro.h"

#define N_BUFFERS 4096u /* of a job, at most */

static OrderAccess access_of(uint64_t object, uint64_t offset, uint64_t length, bool write) {
        return (OrderAccess){.object = object, .offset = offset, .length = length, .write = write};
}

static bool access_is(const OrderAccess *a, OrderAccess b) {
        return a->object == b.object && a->offset == b.offset && a->length == b.length &&
               a->write == b.write;
}

static void ranges_that_overlap_or_touch_become_one(void **state) {
        OrderAccess accesses[] = {
                access_of(1, 64, 64, false),  access_of(1, 0, 64, false),
                access_of(1, 200, 8, false),  access_of(1, 204, 2, false),
                access_of(1, 206, 10, false), access_of(1, 217, 1, false),
        };

        assert_int_equal(orderranges_merge(accesses, 6), 3);
        assert_true(access_is(&accesses[0], access_of(1, 0, 128, false)));
        assert_true(access_is(&accesses[1], access_of(1, 200, 16, false)));
        assert_true(access_is(&accesses[2], access_of(1, 217, 1, false)));
}

static void objects_and_directions_stay_apart(void **state) {
        OrderAccess accesses[] = {
                access_of(2, 0, 64, false),
                access_of(1, 0, 64, true),
                access_of(1, 32, 64, false),
                access_of(1, 64, 64, true),
        };

        assert_int_equal(orderranges_merge(accesses, 4), 3);
        assert_true(access_is(&accesses[0], access_of(1, 32, 64, false)));
        assert_true(access_is(&accesses[1], access_of(1, 0, 128, true)));
        assert_true(access_is(&accesses[2], access_of(2, 0, 64, false)));
}

static void empty_ranges_are_dropped(void **state) {
        OrderAccess accesses[] = {access_of(1, 64, 0, true), access_of(1, 0, 64, false),
                                  access_of(1, 64, 0, false)};

        assert_int_equal(orderranges_merge(accesses, 3), 1);
        assert_true(access_is(&accesses[0], access_of(1, 0, 64, false)));
        assert_int_equal(orderranges_merge(accesses, 0), 0);
}

static void as_many_as_may_be_stay_as_they_are(void **state) {
        OrderAccess accesses[ORDERRANGES_MAX];

        for (size_t i = 0; i < ORDERRANGES_MAX; i++) /* the last one first */
                accesses[i] = access_of(1, (ORDERRANGES_MAX - i) * 1000, 1 + i, i % 2);
        assert_int_equal(orderranges_merge(accesses, ORDERRANGES_MAX), ORDERRANGES_MAX);
        for (size_t i = 0; i < ORDERRANGES_MAX; i++)
                assert_int_equal(accesses[i].length,
                                 1 + ORDERRANGES_MAX - accesses[i].offset / 1000);
}

/* The smallest blocks that make them few enough: ranges far from each other stay apart. */
static void more_are_rounded_to_small_blocks(void **state) {
        enum { N = ORDERRANGES_MAX };
        OrderAccess accesses[2 * N];

        for (size_t i = 0; i < N; i++) {
                accesses[2 * i] = access_of(1, i << 20, 4, true);
                accesses[2 * i + 1] = access_of(1, (i << 20) + 32, 4, true);
        }
        assert_int_equal(orderranges_merge(accesses, ARRAY_SIZE(accesses)), N);
        for (size_t i = 0; i < N; i++)
                assert_true(access_is(&accesses[i], access_of(1, i << 20, 64, true)));
}

static void the_end_of_the_address_space_is_kept(void **state) {
        OrderAccess accesses[N_BUFFERS];
        size_t n;

        for (size_t i = 0; i < N_BUFFERS; i++)
                accesses[i] = access_of(1, UINT64_MAX - 2 - 1000000 * i, 2, true);
        n = orderranges_merge(accesses, N_BUFFERS);
        assert_true(n <= ORDERRANGES_MAX);
        assert_true(accesses[n - 1].offset + accesses[n - 1].length == UINT64_MAX);
}

/* Only what is in the same object and of the same direction can become one. */
static void a_range_of_each_of_many_objects_is_left(void **state) {
        OrderAccess accesses[N_BUFFERS];

        for (size_t i = 0; i < N_BUFFERS; i++)
                accesses[i] = access_of(i * 7919 % (N_BUFFERS / 2), i << 30, 4, false);
        assert_int_equal(orderranges_merge(accesses, N_BUFFERS), N_BUFFERS / 2);
}

static uint64_t random_next(uint64_t *seed) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

static bool covers(const OrderAccess *ranges, size_t n, const OrderAccess *access) {
        for (size_t i = 0; i < n; i++)
                if (ranges[i].object == access->object && ranges[i].write == access->write &&
                    ranges[i].offset <= access->offset &&
                    access->offset + access->length <= ranges[i].offset + ranges[i].length)
                        return true;
        return access->length == 0;
}

static void whatever_a_job_names_is_covered_by_few(void **state) {
        OrderAccess accesses[N_BUFFERS], ranges[N_BUFFERS];
        uint64_t seed = 0x9e3779b97f4a7c15ull;

        for (unsigned round = 0; round < 60; round++) {
                uint64_t n_objects = 1 + random_next(&seed) % 8,
                         size = 1ull << (10 + random_next(&seed) % 30);
                size_t n = random_next(&seed) % (N_BUFFERS + 1), n_left;

                for (size_t i = 0; i < n; i++)
                        accesses[i] =
                                access_of(random_next(&seed) % n_objects, random_next(&seed) % size,
                                          random_next(&seed) % 100, random_next(&seed) % 2);
                memcpy(ranges, accesses, sizeof(ranges));
                n_left = orderranges_merge(ranges, n);
                assert_true(n_left <= ORDERRANGES_MAX);
                for (size_t i = 0; i < n; i++)
                        assert_true(covers(ranges, n_left, &accesses[i]));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranges_that_overlap_or_touch_become_one),
                cmocka_unit_test(objects_and_directions_stay_apart),
                cmocka_unit_test(empty_ranges_are_dropped),
                cmocka_unit_test(as_many_as_may_be_stay_as_they_are),
                cmocka_unit_test(more_are_rounded_to_small_blocks),
                cmocka_unit_test(the_end_of_the_address_space_is_kept),
                cmocka_unit_test(a_range_of_each_of_many_objects_is_left),
                cmocka_unit_test(whatever_a_job_names_is_covered_by_few),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
