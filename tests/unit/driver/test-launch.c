/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the CPU driver: what they compute, and which launches are refused.
 */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 10000

FIXTURE_TEST(every_thread_of_a_grid_runs) {
        Fixture *fixture = *state;
        CUdeviceptr a, b, c;
        float x[N], y[N];
        int n = N;

        for (int i = 0; i < N; i++)
                x[i] = (float)i;
        a = fixture_alloc(fixture, x, sizeof(x));
        b = fixture_alloc(fixture, x, sizeof(x));
        c = fixture_alloc(fixture, NULL, sizeof(x));
        assert_ok(
                fixture_launch(fixture, 0, "add", (N + 255) / 256, 256, 0, PARAMS(&a, &b, &c, &n)));
        fixture_fetch(fixture, y, c, sizeof(y));
        for (int i = 0; i < N; i++)
                assert_true(y[i] == 2.0f * (float)i);
}

FIXTURE_TEST(threads_know_where_they_are) {
        Fixture *fixture = *state;
        struct {
                unsigned x, y, z;
        } threads[5 * 3 * 2 * 24], blocks[5 * 3 * 2 * 24];
        CUlaunchConfig config = {.gridDimX = 5,
                                 .gridDimY = 3,
                                 .gridDimZ = 2,
                                 .blockDimX = 4,
                                 .blockDimY = 3,
                                 .blockDimZ = 2,
                                 .hStream = fixture->streams[0]};
        CUdeviceptr t = fixture_alloc(fixture, NULL, sizeof(threads));
        CUdeviceptr b = fixture_alloc(fixture, NULL, sizeof(blocks));

        assert_ok(driver->cuLaunchKernelEx(&config, fixture_function(fixture, "where"),
                                           PARAMS(&t, &b), NULL));
        fixture_fetch(fixture, threads, t, sizeof(threads));
        fixture_fetch(fixture, blocks, b, sizeof(blocks));
        for (unsigned i = 0; i < 5 * 3 * 2 * 24; i++) {
                assert_int_equal(threads[i].x, i % 4);
                assert_int_equal(threads[i].y, i / 4 % 3);
                assert_int_equal(threads[i].z, i / 12 % 2);
                assert_int_equal(blocks[i].x, i / 24 % 5);
                assert_int_equal(blocks[i].y, i / 24 / 5 % 3);
                assert_int_equal(blocks[i].z, i / 24 / 15);
        }
}

FIXTURE_TEST(barriers_order_a_reduction) {
        Fixture *fixture = *state;
        float x[64 * 256], sums[64];
        CUdeviceptr a, s;

        for (int i = 0; i < 64 * 256; i++)
                x[i] = (float)(i % 256 + i / 256);
        a = fixture_alloc(fixture, x, sizeof(x));
        s = fixture_alloc(fixture, NULL, sizeof(sums));
        assert_ok(fixture_launch(fixture, 0, "sum_static", 64, 256, 0, PARAMS(&a, &s)));
        fixture_fetch(fixture, sums, s, sizeof(sums));
        for (int i = 0; i < 64; i++)
                assert_true(sums[i] == (float)(255 * 128 + i * 256));
}

FIXTURE_TEST(dynamic_shared_memory_is_as_large_as_asked) {
        Fixture *fixture = *state;
        int n = 40000, *x = malloc(3 * sizeof(int) * (size_t)n);
        CUdeviceptr a;

        for (int i = 0; i < 3 * n; i++)
                x[i] = i;
        a = fixture_alloc(fixture, x, 3 * sizeof(int) * (size_t)n);
        assert_int_equal(fixture_launch(fixture, 0, "reverse", 3, 128, 160000, PARAMS(&a, &n)),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuFuncSetAttribute(fixture_function(fixture, "reverse"),
                                             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                             160000));
        assert_ok(fixture_launch(fixture, 0, "reverse", 3, 128, 160000, PARAMS(&a, &n)));
        fixture_fetch(fixture, x, a, 3 * sizeof(int) * (size_t)n);
        for (int i = 0; i < 3 * n; i++)
                assert_int_equal(x[i], i / n * n + n - 1 - i % n);
        free(x);
}

FIXTURE_TEST(threads_that_ended_are_not_waited_for) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 100 * sizeof(int));
        int x[100];

        assert_ok(fixture_launch(fixture, 0, "leave_early", 1, 100, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 100; i++)
                assert_int_equal(x[i], i % 3 ? 66 : 0);
}

FIXTURE_TEST(blocks_vote) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 70 * sizeof(int));
        int x[70];

        assert_ok(fixture_launch(fixture, 0, "vote_block", 1, 70, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 70; i++)
                assert_int_equal(x[i], 35 * 4);
}

FIXTURE_TEST(lanes_of_a_warp_exchange) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 64 * 12 * sizeof(int));
        int x[64][12];

        assert_ok(fixture_launch(fixture, 0, "shuffles", 1, 64, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 64; i++) {
                int lane = i % 32, first = i - lane;

                assert_int_equal(x[i][0], first + 5);
                assert_int_equal(x[i][1], lane < 3 ? i : i - 3);
                assert_int_equal(x[i][2], lane > 28 ? i : i + 3);
                assert_int_equal(x[i][3], i ^ 9);
                assert_int_equal(x[i][4], first + lane / 8 * 8 + 1);
                assert_int_equal((unsigned)x[i][5], 0x49249249u);
                assert_int_equal(x[i][6], 1);
                assert_int_equal(x[i][7], 0);
                assert_int_equal((unsigned)x[i][8], 0x11111111u << lane % 4);
                assert_int_equal(x[i][9], 496);
                assert_int_equal(x[i][10], 2 * (lane ^ 1));
                assert_int_equal(x[i][11], lane >= 16 ? i ^ 1 : lane < 8 ? i + 8 : i);
        }
}

/* They got each other's values: the larger group replaced the smaller, whose lowest lane it has too. */
FIXTURE_TEST(groups_of_a_warp_with_the_same_lowest_lane_do_not_mix) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 64 * 4 * sizeof(int));
        int x[64][4];

        assert_ok(fixture_launch(fixture, 0, "nested_masks", 1, 64, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 64; i++) {
                assert_int_equal(x[i][0], i % 32 < 4 ? i ^ 3 : 0);
                assert_int_equal(x[i][1], i % 32 < 16 ? 100 + (i ^ 3) : 0);
                assert_int_equal(x[i][2], 200 + (i ^ 3));
                assert_int_equal(x[i][3], 32);
        }
}

FIXTURE_TEST(tiles_of_unequal_size_exchange_while_others_wait_for_the_warp) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 64 * sizeof(int));
        int x[64];

        assert_ok(fixture_launch(fixture, 0, "unequal_tiles", 1, 64, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 64; i++) {
                int lane = i % 32, last = i - lane + 31;
                int sum = lane < 8 ? i / 4 * 16 + 6 : lane < 16 ? i / 8 * 64 + 28 : 0;

                assert_int_equal(x[i], 1000 * last + sum);
        }
}

FIXTURE_TEST(groups_know_their_members) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 64 * sizeof(int));
        int x[64];

        assert_ok(fixture_launch(fixture, 0, "groups", 1, 64, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 64; i++)
                assert_int_equal(x[i], i % 2 ? (i / 8 * 64 + 28) * 1000 + 161 : -(i % 8));
}

FIXTURE_TEST(atomics_count_across_blocks) {
        Fixture *fixture = *state;
        CUdeviceptr u = fixture_alloc(fixture, NULL, 16), i = fixture_alloc(fixture, NULL, 8);
        CUdeviceptr l = fixture_alloc(fixture, NULL, 8), f = fixture_alloc(fixture, NULL, 4);
        CUdeviceptr d = fixture_alloc(fixture, NULL, 8), counter;
        unsigned long long wide;
        unsigned numbers[4];
        double real;
        float single;
        int ints[2];

        assert_ok(fixture_launch(fixture, 0, "atomics", 200, 128, 0, PARAMS(&u, &i, &l, &f, &d)));
        fixture_fetch(fixture, numbers, u, sizeof(numbers));
        fixture_fetch(fixture, ints, i, sizeof(ints));
        fixture_fetch(fixture, &wide, l, sizeof(wide));
        fixture_fetch(fixture, &single, f, sizeof(single));
        fixture_fetch(fixture, &real, d, sizeof(real));
        assert_int_equal(numbers[0], 25600);
        assert_int_equal(numbers[1], 25599);
        assert_int_equal(numbers[2], 0);
        assert_int_equal(numbers[3], 0);
        assert_int_equal(ints[0], -25600);
        assert_int_equal(ints[1], -25599);
        assert_true(wide == 25600ull << 33);
        assert_true(single == 12800.0f);
        assert_true(real == 6400.0);
        assert_ok(driver->cuModuleGetGlobal(&counter, NULL, fixture->module, "counter"));
        fixture_fetch(fixture, ints, counter, sizeof(int));
        assert_int_equal(ints[0], 25600);
}

FIXTURE_TEST(threads_of_a_block_can_wait_for_each_other) {
        Fixture *fixture = *state;
        CUdeviceptr lock = fixture_alloc(fixture, NULL, 4), value = fixture_alloc(fixture, NULL, 4);
        int x;

        assert_ok(fixture_launch(fixture, 0, "locks", 8, 64, 0, PARAMS(&lock, &value)));
        fixture_fetch(fixture, &x, value, sizeof(x));
        assert_int_equal(x, 8 * 64);
        assert_ok(fixture_launch(fixture, 0, "flags_inside", 1, 64, 0, PARAMS(&value)));
        fixture_fetch(fixture, &x, value, sizeof(x));
        assert_int_equal(x, 7);
}

FIXTURE_TEST(threads_have_a_stack_each) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 1024 * sizeof(int));
        int x[1024], n = 42;

        assert_ok(fixture_launch(fixture, 0, "deep", 1, 1024, 0, PARAMS(&a, &n)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 1024; i++)
                assert_int_equal(x[i], 42);
}

FIXTURE_TEST(a_cooperative_grid_waits_for_itself) {
        Fixture *fixture = *state;
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                       .value = {.cooperative = 1}};
        CUlaunchConfig config = {.gridDimX = 20,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 40,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = fixture->streams[0],
                                 .attrs = &attribute,
                                 .numAttrs = 1};
        CUdeviceptr x = fixture_alloc(fixture, NULL, 10 * 4), out = fixture_alloc(fixture, NULL, 8);
        CUfunction function = fixture_function(fixture, "grid_wait");
        int result[2], rounds = 10, n_each;

        assert_ok(driver->cuLaunchKernelEx(&config, function, PARAMS(&x, &out, &rounds), NULL));
        fixture_fetch(fixture, result, out, sizeof(result));
        assert_int_equal(result[0], 20);
        assert_int_equal(result[1], 0);

        assert_ok(driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&n_each, function, 40, 0));
        config.gridDimX = 3 * (unsigned)n_each + 1;
        assert_int_equal(
                driver->cuLaunchKernelEx(&config, function, PARAMS(&x, &out, &rounds), NULL),
                CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

FIXTURE_TEST(blocks_of_a_cluster_see_each_others_shared_memory) {
        Fixture *fixture = *state;
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                       .value = {.clusterDim = {4, 1, 1}}};
        CUlaunchConfig config = {.gridDimX = 12,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 8,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = fixture->streams[0],
                                 .attrs = &attribute,
                                 .numAttrs = 1};
        CUfunction function = fixture_function(fixture, "clusters");
        CUdeviceptr out = fixture_alloc(fixture, NULL, 12 * 4);
        int x[12];

        assert_ok(driver->cuLaunchKernelEx(&config, function, PARAMS(&out), NULL));
        fixture_fetch(fixture, x, out, sizeof(x));
        for (int i = 0; i < 12; i++)
                assert_int_equal(x[i], (i / 4 * 4 + (i + 1) % 4) * 10 + 4);

        attribute.value.clusterDim.x = 5;
        assert_int_equal(driver->cuLaunchKernelEx(&config, function, PARAMS(&out), NULL),
                         CUDA_ERROR_INVALID_VALUE);
        attribute.value.clusterDim.x = 12;
        assert_int_equal(driver->cuLaunchKernelEx(&config, function, PARAMS(&out), NULL),
                         CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

FIXTURE_TEST(device_functions_compute_as_on_a_gpu) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 11 * sizeof(float));
        float x[11], want[] = {0.5f, 1.25f, 4.5f, 44, 2.5f, 0, 0.4769363f, 1, 3 + 0x01010108, 5, 3};

        assert_ok(fixture_launch(fixture, 0, "maths", 1, 1, 0, PARAMS(&a)));
        fixture_fetch(fixture, x, a, sizeof(x));
        for (int i = 0; i < 11; i++)
                assert_true(fabsf(x[i] - want[i]) <= 1e-6f * fabsf(want[i]));
}

FIXTURE_TEST(parameters_lie_as_in_a_struct) {
        Fixture *fixture = *state;
        static const size_t sizes[] = {1, 2, 4, 8, 4, 8, 8, 16, 12, 8};
        static const size_t offsets[] = {0, 2, 4, 8, 16, 24, 32, 40, 56, 72};
        CUfunction function = fixture_function(fixture, "parameters");
        struct {
                double a;
                char b;
        } pair = {100, 7};
        int number = 1000, i = 30;
        CUdeviceptr p = fixture_alloc(fixture, &number, 4), out = fixture_alloc(fixture, NULL, 8);
        float f = 0.5f, v[3] = {1, 2, 3};
        long long l = 1ll << 40;
        double d = 0.25, x;
        size_t offset, size;
        short s = -2;
        char c = 1;

        for (size_t k = 0; k < 10; k++) {
                assert_ok(driver->cuFuncGetParamInfo(function, k, &offset, &size));
                assert_int_equal(size, sizes[k]);
                assert_int_equal(offset, offsets[k]);
        }
        assert_int_equal(driver->cuFuncGetParamInfo(function, 10, &offset, &size),
                         CUDA_ERROR_INVALID_VALUE);

        assert_ok(fixture_launch(fixture, 0, "parameters", 1, 1, 0,
                                 PARAMS(&c, &s, &i, &l, &f, &d, &p, &pair, v, &out)));
        fixture_fetch(fixture, &x, out, sizeof(x));
        assert_true(x == 1 - 2 + 30 + (double)l + 0.75 + 1000 + 107 + 6);
}

FIXTURE_TEST(launches_beyond_the_limits_are_refused) {
        static const struct {
                unsigned grid[3], block[3];
        } bad[] = {
                {{0, 1, 1}, {1, 1, 1}},           {{1, 1, 1}, {0, 1, 1}},
                {{1, 65536, 1}, {1, 1, 1}},       {{1, 1, 65536}, {1, 1, 1}},
                {{0x80000000u, 1, 1}, {1, 1, 1}}, {{1, 1, 1}, {1025, 1, 1}},
                {{1, 1, 1}, {32, 33, 1}},         {{1, 1, 1}, {1, 1, 65}},
        };
        Fixture *fixture = *state;
        CUfunction function = fixture_function(fixture, "trap");
        CUlaunchAttribute attribute = {.id = 77};
        CUlaunchConfig config;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                config = (CUlaunchConfig){bad[i].grid[0],
                                          bad[i].grid[1],
                                          bad[i].grid[2],
                                          bad[i].block[0],
                                          bad[i].block[1],
                                          bad[i].block[2],
                                          0,
                                          fixture->streams[0],
                                          NULL,
                                          0};
                assert_int_equal(driver->cuLaunchKernelEx(&config, function, NULL, NULL),
                                 CUDA_ERROR_INVALID_VALUE);
        }

        config = (CUlaunchConfig){1, 1, 1, 1, 1, 1, 0, fixture->streams[0], &attribute, 1};
        assert_int_equal(driver->cuLaunchKernelEx(&config, function, NULL, NULL),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(fixture_launch(fixture, 0, "add", 1, 1, 0, NULL),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuLaunchKernelEx(&config, NULL, NULL, NULL),
                         CUDA_ERROR_INVALID_HANDLE);
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(every_thread_of_a_grid_runs),
                TEST(threads_know_where_they_are),
                TEST(barriers_order_a_reduction),
                TEST(dynamic_shared_memory_is_as_large_as_asked),
                TEST(threads_that_ended_are_not_waited_for),
                TEST(blocks_vote),
                TEST(lanes_of_a_warp_exchange),
                TEST(groups_of_a_warp_with_the_same_lowest_lane_do_not_mix),
                TEST(tiles_of_unequal_size_exchange_while_others_wait_for_the_warp),
                TEST(groups_know_their_members),
                TEST(atomics_count_across_blocks),
                TEST(threads_of_a_block_can_wait_for_each_other),
                TEST(threads_have_a_stack_each),
                TEST(a_cooperative_grid_waits_for_itself),
                TEST(blocks_of_a_cluster_see_each_others_shared_memory),
                TEST(device_functions_compute_as_on_a_gpu),
                TEST(parameters_lie_as_in_a_struct),
                TEST(launches_beyond_the_limits_are_refused),
        };

        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
