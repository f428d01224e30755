/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "util/macro.h"
#include "worker/launcher.h"
#include "worker/stream.h"

/* ---- a driver that keeps what it was asked to run --------------------------------------------- */

typedef struct FakeExec {
        CUDA_KERNEL_NODE_PARAMS params;
        uint64_t value; /* of the first argument */
} FakeExec;

static FakeExec added; /* to the graph that is made */
static FakeExec ran;   /* last, by a graph or without one */
static unsigned n_execs, n_graphs, n_made, n_patched, n_launched, n_plain;
static CUresult make_result, patch_result, launch_result, plain_result;

static CUresult fake_create(CUgraph *graph, unsigned flags) {
        *graph = (CUgraph)0x1;
        ++n_graphs;
        return CUDA_SUCCESS;
}

static CUresult fake_destroy(CUgraph graph) {
        --n_graphs;
        return CUDA_SUCCESS;
}

static CUresult fake_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                         const CUDA_KERNEL_NODE_PARAMS *params) {
        *node = (CUgraphNode)0x2;
        added = (FakeExec){*params, *(uint64_t *)params->kernelParams[0]};
        return CUDA_SUCCESS;
}

static CUresult fake_instantiate(CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags) {
        FakeExec *exec;

        if (make_result != CUDA_SUCCESS)
                return make_result;
        exec = malloc(sizeof(*exec));
        assert_non_null(exec);
        *exec = added;
        *ret_exec = (CUgraphExec)exec;
        ++n_execs;
        ++n_made;
        return CUDA_SUCCESS;
}

static CUresult fake_exec_destroy(CUgraphExec exec) {
        free(exec);
        --n_execs;
        return CUDA_SUCCESS;
}

static CUresult fake_patch(CUgraphExec exec, CUgraphNode node,
                           const CUDA_KERNEL_NODE_PARAMS *params) {
        assert_ptr_equal(node, 0x2);
        if (patch_result != CUDA_SUCCESS)
                return patch_result;
        *(FakeExec *)exec = (FakeExec){*params, *(uint64_t *)params->kernelParams[0]};
        ++n_patched;
        return CUDA_SUCCESS;
}

static CUresult fake_graph_launch(CUgraphExec exec, CUstream stream) {
        assert_ptr_equal(stream, 0x3);
        if (launch_result != CUDA_SUCCESS)
                return launch_result;
        ran = *(FakeExec *)exec;
        ++n_launched;
        return CUDA_SUCCESS;
}

static CUresult fake_launch(const CUlaunchConfig *config, CUfunction function, void **params,
                            void **extra) {
        assert_ptr_equal(config->hStream, 0x3);
        ++n_plain;
        if (plain_result == CUDA_SUCCESS)
                ran = (FakeExec){{.func = function, .gridDimX = config->gridDimX},
                                 *(uint64_t *)params[0]};
        return plain_result;
}

/* One that was compiled for clusters. */
#define CLUSTERS 0x200

static CUresult fake_attribute(int *value, CUfunction_attribute attribute, CUfunction function) {
        if (attribute != CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)
                return CUDA_ERROR_INVALID_VALUE;
        *value = function == (CUfunction)CLUSTERS ? 2 : 0;
        return CUDA_SUCCESS;
}

static const Driver driver = {
        .cuFuncGetAttribute = fake_attribute,
        .cuGraphCreate = fake_create,
        .cuGraphDestroy = fake_destroy,
        .cuGraphAddKernelNode = fake_add,
        .cuGraphInstantiateWithFlags = fake_instantiate,
        .cuGraphExecDestroy = fake_exec_destroy,
        .cuGraphExecKernelNodeSetParams = fake_patch,
        .cuGraphLaunch = fake_graph_launch,
        .cuLaunchKernelEx = fake_launch,
};

/* ---- launches ------------------------------------------------------------------------------------ */

static Launcher launcher;
static bool may_make;

static int set_up(void **state) {
        launcher = (Launcher){0};
        may_make = true;
        n_execs = n_graphs = n_made = n_patched = n_launched = n_plain = 0;
        make_result = patch_result = launch_result = plain_result = CUDA_SUCCESS;
        return 0;
}

static int tear_down(void **state) {
        launcher_clear(&launcher, &driver);
        assert_int_equal(n_execs, 0);
        assert_int_equal(n_graphs, 0);
        return 0;
}

static CUresult launch(uintptr_t function, unsigned grid, uint64_t value, unsigned n_attributes) {
        CUlaunchAttribute attributes[1] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE}};
        CUlaunchConfig config = {
                .gridDimX = grid,
                .gridDimY = 2,
                .gridDimZ = 3,
                .blockDimX = 4,
                .blockDimY = 5,
                .blockDimZ = 6,
                .sharedMemBytes = 7,
                .hStream = (CUstream)0x3,
                .attrs = attributes,
                .numAttrs = n_attributes,
        };
        void *params[] = {&value};

        return launcher_launch(&launcher, &driver, &config, (CUfunction)function, params, may_make);
}

static void assert_ran(uintptr_t function, unsigned grid, uint64_t value) {
        assert_ptr_equal(ran.params.func, function);
        assert_int_equal(ran.params.gridDimX, grid);
        assert_int_equal(ran.value, value);
}

static void test_one_graph_for_all_launches_of_a_function(void **state) {
        for (unsigned i = 1; i <= 5; ++i) {
                assert_int_equal(launch(0x100, 10 * i, i, 0), CUDA_SUCCESS);
                assert_ran(0x100, 10 * i, i);
        }
        assert_int_equal(ran.params.gridDimY, 2);
        assert_int_equal(ran.params.gridDimZ, 3);
        assert_int_equal(ran.params.blockDimX, 4);
        assert_int_equal(ran.params.blockDimY, 5);
        assert_int_equal(ran.params.blockDimZ, 6);
        assert_int_equal(ran.params.sharedMemBytes, 7);
        assert_int_equal(n_made, 1);
        assert_int_equal(n_patched, 4);
        assert_int_equal(n_launched, 5);
        assert_int_equal(n_plain, 0);
}

static void test_functions_that_take_turns_keep_theirs(void **state) {
        for (unsigned round = 0; round < 3; ++round)
                for (unsigned i = 0; i < LAUNCHER_GRAPHS; ++i) {
                        LauncherGraph *last = &launcher.graphs[LAUNCHER_GRAPHS - 1];

                        assert_true(round == 0 ||
                                    last->function == (CUfunction)(uintptr_t)(0x100 + i));
                        assert_int_equal(launch(0x100 + i, 1, round, 0), CUDA_SUCCESS);
                        assert_ran(0x100 + i, 1, round);
                }
        assert_int_equal(n_made, LAUNCHER_GRAPHS);
        assert_int_equal(n_plain, 0);
}

static void test_one_more_function_gets_that_of_the_one_not_used_for_longest(void **state) {
        for (unsigned i = 0; i <= LAUNCHER_GRAPHS; ++i)
                assert_int_equal(launch(0x100 + i, 1, i, 0), CUDA_SUCCESS);
        assert_ran(0x100 + LAUNCHER_GRAPHS, 1, LAUNCHER_GRAPHS);
        assert_int_equal(n_made, LAUNCHER_GRAPHS);
        for (unsigned i = 0; i < LAUNCHER_GRAPHS; ++i)
                assert_ptr_not_equal(launcher.graphs[i].function, 0x100);
        assert_int_equal(launch(0x100, 1, 9, 0), CUDA_SUCCESS);
        assert_ran(0x100, 1, 9);
        assert_int_equal(n_made, LAUNCHER_GRAPHS);
}

static void test_attributes_go_without_a_graph(void **state) {
        assert_int_equal(launch(0x100, 1, 8, 1), CUDA_SUCCESS);
        assert_ran(0x100, 1, 8);
        assert_int_equal(n_plain, 1);
        assert_int_equal(n_made, 0);
}

/* On an H200 the kernel that got its node next ran 2 blocks of a grid of 3: the node kept the cluster. */
static void test_a_kernel_compiled_for_clusters_never_has_a_graph(void **state) {
        for (unsigned i = 0; i < 2 * LAUNCHER_GRAPHS; ++i) {
                assert_int_equal(launch(CLUSTERS, 2, i, 0), CUDA_SUCCESS);
                assert_ran(CLUSTERS, 2, i);
                assert_int_equal(n_plain, i + 1);
                assert_int_equal(launch(0x100 + i, 1, i, 0), CUDA_SUCCESS);
                assert_ran(0x100 + i, 1, i);
                assert_int_equal(n_launched, i + 1);
        }
        assert_int_equal(n_made, LAUNCHER_GRAPHS);
}

static void test_what_cannot_be_made_goes_without(void **state) {
        make_result = CUDA_ERROR_OUT_OF_MEMORY;
        assert_int_equal(launch(0x100, 1, 8, 0), CUDA_SUCCESS);
        assert_ran(0x100, 1, 8);
        assert_int_equal(n_plain, 1);
        assert_int_equal(n_graphs, 0);
        make_result = CUDA_SUCCESS;
        assert_int_equal(launch(0x100, 1, 9, 0), CUDA_SUCCESS);
        assert_int_equal(n_launched, 1);
}

static void test_what_cannot_be_patched_goes_without(void **state) {
        assert_int_equal(launch(0x100, 1, 8, 0), CUDA_SUCCESS);
        patch_result = CUDA_ERROR_INVALID_VALUE;
        assert_int_equal(launch(0x100, 1, 9, 0), CUDA_SUCCESS);
        assert_ran(0x100, 1, 9);
        assert_int_equal(n_plain, 1);
        assert_int_equal(n_launched, 1);
}

static void test_none_is_made_when_none_may_be(void **state) {
        may_make = false;
        assert_int_equal(launch(0x100, 1, 8, 0), CUDA_SUCCESS);
        assert_ran(0x100, 1, 8);
        assert_int_equal(n_plain, 1);
        assert_int_equal(launcher.n, 0);

        may_make = true;
        for (unsigned i = 0; i < LAUNCHER_GRAPHS; ++i)
                assert_int_equal(launch(0x100 + i, 1, i, 0), CUDA_SUCCESS);
        assert_int_equal(launcher.n, LAUNCHER_GRAPHS);

        /* Those that there are serve, another function too. */
        may_make = false;
        assert_int_equal(launch(0x100, 1, 8, 0), CUDA_SUCCESS);
        assert_int_equal(launch(0x110, 1, 9, 0), CUDA_SUCCESS);
        assert_ran(0x110, 1, 9);
        assert_int_equal(n_plain, 1);
        assert_int_equal(n_made, LAUNCHER_GRAPHS);
}

static void test_the_answer_is_that_of_the_launch(void **state) {
        launch_result = CUDA_ERROR_UNKNOWN;
        plain_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        assert_int_equal(launch(0x100, 1, 8, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        launch_result = plain_result = CUDA_SUCCESS;
        assert_int_equal(launch(0x100, 1, 9, 0), CUDA_SUCCESS);
        assert_ran(0x100, 1, 9);
}

static void test_a_cleared_one_knows_no_function(void **state) {
        assert_int_equal(launch(0x100, 1, 8, 0), CUDA_SUCCESS);
        launcher_clear(&launcher, &driver);
        assert_int_equal(n_execs, 0);
        assert_int_equal(launch(0x100, 1, 9, 0), CUDA_SUCCESS);
        assert_int_equal(n_made, 2);
        assert_ran(0x100, 1, 9);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_one_graph_for_all_launches_of_a_function,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_functions_that_take_turns_keep_theirs, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_one_more_function_gets_that_of_the_one_not_used_for_longest, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_attributes_go_without_a_graph, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_kernel_compiled_for_clusters_never_has_a_graph, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_cannot_be_made_goes_without, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_what_cannot_be_patched_goes_without, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_none_is_made_when_none_may_be, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_answer_is_that_of_the_launch, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_cleared_one_knows_no_function, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
