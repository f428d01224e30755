/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels' twins on the CPU driver, as compiler/batch.h describes them.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/batch.h"

#define N_ROWS 13
#define N      1000

typedef struct Options {
        char mode;
        double factor;
        short shift;
} Options;

static CUmodule twins_load(void) {
        void *twins = fixture_read_file(getenv("GPUQ_TEST_TWINS"), NULL);
        CUmodule module;

        assert_ok(driver->cuModuleLoadData(&module, twins));
        free(twins);
        return module;
}

static CUfunction function_of(CUmodule module, const char *name) {
        CUfunction function = NULL;

        assert_ok(driver->cuModuleGetFunction(&function, module, name));
        return function;
}

static CUresult launch(Fixture *fixture, CUfunction function, unsigned grid_x, unsigned grid_y,
                       unsigned grid_z, unsigned block, unsigned shared, void **params) {
        CUlaunchConfig config = {
                .gridDimX = grid_x,
                .gridDimY = grid_y,
                .gridDimZ = grid_z,
                .blockDimX = block,
                .blockDimY = 1,
                .blockDimZ = 1,
                .sharedMemBytes = shared,
                .hStream = fixture->streams[0],
        };

        return driver->cuLaunchKernelEx(&config, function, params, NULL);
}

/* Puts a launch's arguments into row @row of @table, as the worker does. */
static void add_row(char *table, CUfunction kernel, unsigned row, void *const *params, size_t n) {
        size_t offset, size;

        assert_ok(driver->cuFuncGetParamInfo(kernel, n - 1, &offset, &size));
        table += row * batch_pitch(offset + size);
        for (size_t i = 0; i < n; i++) {
                assert_ok(driver->cuFuncGetParamInfo(kernel, i, &offset, &size));
                memcpy(table + offset, params[i], size);
        }
}

FIXTURE_TEST(a_twin_does_for_each_row_what_its_kernel_does_alone) {
        static double x[N], plain[N_ROWS][N], twin[N_ROWS][N];
        static char table[BATCH_TABLE_BYTES];
        Fixture *fixture = *state;
        CUmodule module = twins_load();
        CUfunction kernel = function_of(module, "affine");
        CUdeviceptr in, out, outs;
        void *rows = table;

        for (int i = 0; i < N; i++)
                x[i] = 1.0 / (i + 1);
        memset(twin, 0x5a, sizeof(twin));
        in = fixture_alloc(fixture, x, sizeof(x));
        outs = fixture_alloc(fixture, twin, sizeof(twin));

        for (int row = 0; row < N_ROWS; row++) {
                Options options = {(char)row, row * 0.1, (short)-row};
                float extra[4] = {0, 0, 0, (float)row / 7};
                CUdeviceptr to = outs + (size_t)row * sizeof(*twin);
                int n = N - 50 * row;
                char tag = (char)(row * 3);

                memset(plain[row], 0x5a, sizeof(*plain));
                out = fixture_alloc(fixture, plain[row], sizeof(*plain));
                assert_ok(launch(fixture, kernel, 5, 2, 1, 128, 0,
                                 PARAMS(&tag, &in, &out, &options, extra, &n)));
                fixture_fetch(fixture, plain[row], out, sizeof(*plain));
                add_row(table, kernel, (unsigned)row, PARAMS(&tag, &in, &to, &options, extra, &n),
                        6);
        }
        assert_ok(launch(fixture, function_of(module, "affine" BATCH_SUFFIX), 5, 2, N_ROWS, 128, 0,
                         PARAMS(rows)));
        memset(table, 0, sizeof(table)); /* the caller's again */
        fixture_fetch(fixture, twin, outs, sizeof(twin));
        assert_memory_equal(twin, plain, sizeof(twin));
        assert_true(twin[1][0] > 1000);
}

FIXTURE_TEST(rows_have_barriers_shared_memory_and_atomics_of_their_own) {
        static int x[N_ROWS][512], plain[512], twin[512];
        static char table[BATCH_TABLE_BYTES];
        Fixture *fixture = *state;
        CUmodule module = twins_load();
        CUfunction kernel = function_of(module, "scan");
        CUdeviceptr in[N_ROWS], outs[N_ROWS], totals[N_ROWS], out, total;
        int zero = 0, sum, sums;
        void *rows = table;

        for (int row = 0; row < N_ROWS; row++) {
                for (int i = 0; i < 512; i++)
                        x[row][i] = (i * 7919 + row * 104729) % 1000;
                in[row] = fixture_alloc(fixture, x[row], sizeof(*x));
                outs[row] = fixture_alloc(fixture, NULL, sizeof(*x));
                totals[row] = fixture_alloc(fixture, &zero, sizeof(zero));
                add_row(table, kernel, (unsigned)row, PARAMS(&in[row], &outs[row], &totals[row]),
                        3);
        }
        assert_ok(launch(fixture, function_of(module, "scan" BATCH_SUFFIX), 4, 1, N_ROWS, 128, 512,
                         PARAMS(rows)));

        out = fixture_alloc(fixture, NULL, sizeof(*x));
        for (int row = 0; row < N_ROWS; row++) {
                total = fixture_alloc(fixture, &zero, sizeof(zero));
                assert_ok(
                        launch(fixture, kernel, 4, 1, 1, 128, 512, PARAMS(&in[row], &out, &total)));
                fixture_fetch(fixture, plain, out, sizeof(plain));
                fixture_fetch(fixture, &sum, total, sizeof(sum));
                fixture_fetch(fixture, twin, outs[row], sizeof(twin));
                fixture_fetch(fixture, &sums, totals[row], sizeof(sums));
                assert_memory_equal(twin, plain, sizeof(twin));
                assert_int_equal(sums, sum);
        }
}

FIXTURE_TEST(a_twin_takes_one_table_and_is_a_function_like_others) {
        CUmodule module = twins_load();
        CUfunction twin = function_of(module, "affine" BATCH_SUFFIX);
        const char *name;
        size_t offset, size;
        int threads;

        assert_ok(driver->cuFuncGetName(&name, twin));
        assert_string_equal(name, "affine" BATCH_SUFFIX);
        assert_ok(driver->cuFuncGetParamInfo(twin, 0, &offset, &size));
        assert_int_equal(offset, 0);
        assert_int_equal(size, BATCH_TABLE_BYTES);
        assert_int_equal(driver->cuFuncGetParamInfo(twin, 1, &offset, &size),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                             twin));
        assert_true(threads >= 256);
        assert_ok(driver->cuFuncLoad(twin));
        assert_ok(driver->cuModuleUnload(module));
}

FIXTURE_TEST(there_is_no_twin_where_the_page_says_so) {
        static const char *const without[] = {"idle", "large", "aligned", "none"};
        Fixture *fixture = *state;
        CUmodule module = twins_load();
        CUfunction function;
        char name[80];

        for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++) {
                snprintf(name, sizeof(name), "%s" BATCH_SUFFIX, without[i]);
                assert_int_equal(driver->cuModuleGetFunction(&function, module, name),
                                 CUDA_ERROR_NOT_FOUND);
        }

        /* This one prints and has variables. */
        assert_int_equal(
                driver->cuModuleGetFunction(&function, fixture->module, "add" BATCH_SUFFIX),
                CUDA_ERROR_NOT_FOUND);
}

FIXTURE_TEST(a_table_has_no_more_rows_than_fit_and_they_need_nothing_of_each_other) {
        static char table[BATCH_TABLE_BYTES];
        Fixture *fixture = *state;
        CUfunction twin = function_of(twins_load(), "poke" BATCH_SUFFIX);
        CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
        CUlaunchConfig config = {1, 1, 2, 1, 1, 1, 0, fixture->streams[0], &attribute, 1};
        unsigned n = (unsigned)batch_rows(12);
        CUdeviceptr p = fixture_alloc(fixture, NULL, 4096);
        void *rows = table;

        for (unsigned row = 0; row < n; row++)
                memcpy(table + row * batch_pitch(12), &p, sizeof(p));
        assert_ok(launch(fixture, twin, 1, 1, n, 1, 0, PARAMS(rows)));
        assert_int_equal(launch(fixture, twin, 1, 1, n + 1, 1, 0, PARAMS(rows)),
                         CUDA_ERROR_INVALID_VALUE);

        attribute.value.cooperative = 1;
        assert_int_equal(driver->cuLaunchKernelEx(&config, twin, PARAMS(rows), NULL),
                         CUDA_ERROR_INVALID_VALUE);
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = attribute.value.clusterDim.y = 1;
        attribute.value.clusterDim.z = 2;
        assert_int_equal(driver->cuLaunchKernelEx(&config, twin, PARAMS(rows), NULL),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
}

FIXTURE_TEST(one_bad_row_is_a_fault_of_the_launch) {
        static char table[BATCH_TABLE_BYTES];
        Fixture *fixture = *state;
        CUfunction twin = function_of(twins_load(), "poke" BATCH_SUFFIX);
        CUdeviceptr p = fixture_alloc(fixture, NULL, 4096), bad = 64;
        void *rows = table;

        memcpy(table, &p, sizeof(p));
        memcpy(table + batch_pitch(12), &bad, sizeof(bad));
        assert_ok(launch(fixture, twin, 1, 1, 2, 1, 0, PARAMS(rows)));
        assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]),
                         CUDA_ERROR_ILLEGAL_ADDRESS);
}

FIXTURE_TEST(a_twin_runs_as_a_node_of_a_graph) {
        static char table[BATCH_TABLE_BYTES];
        Fixture *fixture = *state;
        CUfunction twin = function_of(twins_load(), "poke" BATCH_SUFFIX);
        int values[4] = {-1, -1, -1, -1};
        CUdeviceptr p = fixture_alloc(fixture, values, sizeof(values));
        void *rows = table, *params[] = {rows};
        CUDA_KERNEL_NODE_PARAMS node = {
                .func = twin,
                .gridDimX = 1,
                .gridDimY = 1,
                .gridDimZ = 3,
                .blockDimX = 1,
                .blockDimY = 1,
                .blockDimZ = 1,
                .kernelParams = params,
        };
        CUgraph graph;
        CUgraphNode made;
        CUgraphExec exec;

        for (int row = 0; row < 3; row++) {
                memcpy(table + row * batch_pitch(12), &p, sizeof(p));
                memcpy(table + row * batch_pitch(12) + 8, &(int){row + 1}, sizeof(int));
        }
        assert_ok(driver->cuGraphCreate(&graph, 0));
        assert_ok(driver->cuGraphAddKernelNode(&made, graph, NULL, 0, &node));
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        fixture_fetch(fixture, values, p, sizeof(values));
        for (int i = 0; i < 4; i++)
                assert_int_equal(values[i], i == 0 ? -1 : i);
        assert_ok(driver->cuGraphExecDestroy(exec));
        assert_ok(driver->cuGraphDestroy(graph));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(a_twin_does_for_each_row_what_its_kernel_does_alone),
                TEST(rows_have_barriers_shared_memory_and_atomics_of_their_own),
                TEST(a_twin_takes_one_table_and_is_a_function_like_others),
                TEST(there_is_no_twin_where_the_page_says_so),
                TEST(a_table_has_no_more_rows_than_fit_and_they_need_nothing_of_each_other),
                TEST(one_bad_row_is_a_fault_of_the_launch),
                TEST(a_twin_runs_as_a_node_of_a_graph),
        };

        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
