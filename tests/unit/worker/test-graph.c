/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/graph.h"

/* ---- a driver whose graphs are lists of what its nodes were given ------------------------------- */

#define N_STEPS 3u /* of each program here: a launch, a copy, a fill */

typedef struct FakeExec {
        uint64_t given[N_STEPS];
        unsigned n_patched;
} FakeExec;

static uint64_t added[N_STEPS];
static CUresult make_result, patch_result;
static unsigned n_graphs, n_execs, n_execs_most;

static CUgraphNode fake_node(size_t i) {
        return (CUgraphNode)(i + 1);
}

static CUresult fake_create(CUgraph *graph, unsigned flags) {
        *graph = (CUgraph)0x1;
        n_graphs++;
        return CUDA_SUCCESS;
}

static CUresult fake_destroy(CUgraph graph) {
        n_graphs--;
        return CUDA_SUCCESS;
}

static CUresult fake_add(CUgraphNode *node, size_t i, uint64_t value) {
        *node = fake_node(i);
        added[i] = value;
        return CUDA_SUCCESS;
}

static CUresult fake_add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                size_t n, const CUDA_KERNEL_NODE_PARAMS *params) {
        return fake_add(node, 0, *(uint64_t *)params->kernelParams[0]);
}

static CUresult fake_add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                              const CUDA_MEMCPY3D *params, CUcontext context) {
        return fake_add(node, 1, params->dstDevice);
}

static CUresult fake_add_fill(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n,
                              const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context) {
        return fake_add(node, 2, params->value);
}

static CUresult fake_instantiate(CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags) {
        FakeExec *exec;

        if (make_result != CUDA_SUCCESS)
                return make_result;
        exec = calloc(1, sizeof(*exec));
        assert_non_null(exec);
        memcpy(exec->given, added, sizeof(added));
        *ret_exec = (CUgraphExec)exec;
        n_execs++;
        n_execs_most = MAX(n_execs_most, n_execs);
        return CUDA_SUCCESS;
}

static CUresult fake_exec_destroy(CUgraphExec exec) {
        free(exec);
        n_execs--;
        return CUDA_SUCCESS;
}

static CUresult fake_patch(CUgraphExec handle, CUgraphNode node, size_t i, uint64_t value) {
        FakeExec *exec = (FakeExec *)handle;

        assert_ptr_equal(node, fake_node(i));
        if (patch_result != CUDA_SUCCESS)
                return patch_result;
        exec->given[i] = value;
        exec->n_patched++;
        return CUDA_SUCCESS;
}

static CUresult fake_patch_kernel(CUgraphExec exec, CUgraphNode node,
                                  const CUDA_KERNEL_NODE_PARAMS *params) {
        return fake_patch(exec, node, 0, *(uint64_t *)params->kernelParams[0]);
}

static CUresult fake_patch_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params,
                                CUcontext context) {
        return fake_patch(exec, node, 1, params->dstDevice);
}

static CUresult fake_patch_fill(CUgraphExec exec, CUgraphNode node,
                                const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context) {
        return fake_patch(exec, node, 2, params->value);
}

static Driver fake_driver = {
        .cuGraphCreate = fake_create,
        .cuGraphDestroy = fake_destroy,
        .cuGraphAddKernelNode = fake_add_kernel,
        .cuGraphAddMemcpyNode = fake_add_copy,
        .cuGraphAddMemsetNode = fake_add_fill,
        .cuGraphInstantiateWithFlags = fake_instantiate,
        .cuGraphExecDestroy = fake_exec_destroy,
        .cuGraphExecKernelNodeSetParams = fake_patch_kernel,
        .cuGraphExecMemcpyNodeSetParams = fake_patch_copy,
        .cuGraphExecMemsetNodeSetParams = fake_patch_fill,
};

static Context context = {.cu = &fake_driver};

/* ---- a program ------------------------------------------------------------------------------------ */

static FunctionParameter parameters[] = {{.size = 8}, {.size = 1}};
static Function function = {.parameters = parameters, .n_parameters = 2};

typedef struct Run {
        uint64_t value;
        CUdeviceptr buffer;
        uint8_t flag;
        void *values[2];
        Step steps[N_STEPS];
        Program program;
} Run;

/* All that patching can change, from one number. */
static void run_init(Run *run, uint64_t value, CUdeviceptr buffer, uint32_t fill) {
        ProgramPlace place = {&run->buffer, 16};

        *run = (Run){.value = value, .buffer = buffer};
        run->values[0] = &run->value;
        run->values[1] = &run->flag;
        run->steps[0] = (Step){.kind = STEP_LAUNCH,
                               .launch = {.function = &function, .values = run->values}};
        run->steps[1] = (Step){.kind = STEP_COPY, .copy = {place, place, 8}};
        run->steps[2] = (Step){.kind = STEP_FILL, .fill = {place, 4, fill, 1}};
        run->program = (Program){
                .addresses = &run->buffer, .n_buffers = 1, .steps = run->steps, .n_steps = N_STEPS};
}

static const Stream streams[2];

static int try_on(Graphs *graphs, const Stream *stream, uint64_t value, CUdeviceptr buffer,
                  uint32_t fill, Graph **ret_graph) {
        Failure failure = {0};
        Run run;
        int r;

        run_init(&run, value, buffer, fill);
        r = graphs_take(graphs, &run.program, stream, ret_graph, &failure);
        assert_int_equal(r == FAILURE_E_SET, failure_is_set(&failure));
        failure_clear(&failure);
        return r;
}

static Graph *take_on(Graphs *graphs, const Stream *stream, uint64_t value, CUdeviceptr buffer,
                      uint32_t fill) {
        Graph *graph = NULL;

        assert_int_equal(try_on(graphs, stream, value, buffer, fill, &graph), 0);
        return graph;
}

static Graph *take(Graphs *graphs, uint64_t value, CUdeviceptr buffer, uint32_t fill) {
        return take_on(graphs, &streams[0], value, buffer, fill);
}

static void assert_given(const Graph *graph, uint64_t value, CUdeviceptr buffer, uint32_t fill,
                         unsigned n_patched) {
        const FakeExec *exec = (const FakeExec *)graph->exec;

        assert_int_equal(exec->given[0], value);
        assert_int_equal(exec->given[1], buffer + 16);
        assert_int_equal(exec->given[2], fill);
        assert_int_equal(exec->n_patched, n_patched);
}

static void end(Graphs *graphs) {
        graphs_clear(graphs);
        assert_int_equal(n_execs, 0);
        assert_int_equal(n_graphs, 0);
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static void a_run_like_the_last_patches_nothing(void **state) {
        Graphs graphs;

        graphs_init(&graphs, &context);
        for (unsigned i = 0; i < 3; ++i) {
                Graph *graph = take(&graphs, 7, 0x1000, 9);

                assert_given(graph, 7, 0x1000, 9, 0);
                graph_release(graph);
        }
        assert_int_equal(graphs.n_made, 1);
        assert_int_equal(graphs.n_reused, 2);
        end(&graphs);
}

static void only_steps_that_changed_are_patched(void **state) {
        Graphs graphs;
        Graph *graph;

        graphs_init(&graphs, &context);
        graph_release(take(&graphs, 7, 0x1000, 9));
        graph = take(&graphs, 8, 0x1000, 9);
        assert_given(graph, 8, 0x1000, 9, 1);
        graph_release(graph);
        graph = take(&graphs, 8, 0x1000, 10);
        assert_given(graph, 8, 0x1000, 10, 2);
        graph_release(graph);
        graph = take(&graphs, 8, 0x2000, 10); /* of the copy and the fill */
        assert_given(graph, 8, 0x2000, 10, 4);
        graph_release(graph);
        graph = take(&graphs, 7, 0x1000, 9); /* back to the first */
        assert_given(graph, 7, 0x1000, 9, 7);
        graph_release(graph);
        end(&graphs);
}

static void the_last_byte_of_an_argument_counts(void **state) {
        Failure failure = {0};
        Graphs graphs;
        Graph *graph;
        Run run;

        graphs_init(&graphs, &context);
        graph_release(take(&graphs, 7, 0x1000, 9));
        run_init(&run, 7, 0x1000, 9);
        run.flag = 1;
        assert_int_equal(graphs_take(&graphs, &run.program, &streams[0], &graph, &failure), 0);
        assert_given(graph, 7, 0x1000, 9, 1);
        graph_release(graph);
        end(&graphs);
}

static void the_graph_that_has_the_arguments_is_taken(void **state) {
        Graph *first, *second;
        Graphs graphs;

        graphs_init(&graphs, &context);
        first = take(&graphs, 1, 0x1000, 9);
        second = take_on(&graphs, &streams[1], 2, 0x2000, 9);
        assert_ptr_not_equal(first, second);
        graph_release(first);
        graph_release(second);

        assert_ptr_equal(take(&graphs, 2, 0x2000, 9), second);
        assert_ptr_equal(take(&graphs, 1, 0x1000, 9), first);
        assert_given(first, 1, 0x1000, 9, 0);
        assert_given(second, 2, 0x2000, 9, 0);
        graph_release(first);
        graph_release(second);

        /* For new ones the one that was taken last keeps what it has. */
        assert_ptr_equal(take(&graphs, 3, 0x3000, 9), second);
        graph_release(second);
        end(&graphs);
}

/* The same addresses, and something else there: a driver may have looked when it was given them. */
static void after_memory_has_gone_all_is_patched_once(void **state) {
        Graphs graphs;
        Graph *graph;

        graphs_init(&graphs, &context);
        graph_release(take(&graphs, 7, 0x1000, 9));
        graphs_forget_addresses(&graphs);
        for (unsigned i = 0; i < 2; ++i) {
                graph = take(&graphs, 7, 0x1000, 9);
                assert_given(graph, 7, 0x1000, 9, N_STEPS);
                graph_release(graph);
        }
        end(&graphs);
}

static void take_run(Graphs *graphs, Run *run, unsigned n_patched) {
        Failure failure = {0};
        Graph *graph;

        assert_int_equal(graphs_take(graphs, &run->program, &streams[0], &graph, &failure), 0);
        assert_given(graph, run->value, run->buffer, run->steps[2].fill.value, n_patched);
        graph_release(graph);
}

/* Then nothing but its number and its buffers is compared. */
static void a_kept_program_knows_its_graph(void **state) {
        Run run, other;
        Graphs graphs;

        graphs_init(&graphs, &context);
        run_init(&run, 7, 0x1000, 9);
        run.program.number = 1;
        take_run(&graphs, &run, 0);
        take_run(&graphs, &run, 0);
        run.buffer = 0x2000; /* of the copy and the fill */
        take_run(&graphs, &run, 2);
        take_run(&graphs, &run, 2);
        graphs_forget_addresses(&graphs);
        take_run(&graphs, &run, 2 + N_STEPS);

        run_init(&other, 8, 0x2000, 9);
        other.program.number = 2;
        take_run(&graphs, &other, 3 + N_STEPS);
        take_run(&graphs, &run, 4 + N_STEPS);
        other.program.number = 0; /* one that is not kept */
        take_run(&graphs, &other, 5 + N_STEPS);
        take_run(&graphs, &run, 6 + N_STEPS);
        assert_int_equal(graphs.n_made, 1);
        assert_int_equal(graphs.n_reused, 8);
        end(&graphs);
}

static void of_a_program_with_many_buffers_all_is_compared(void **state) {
        CUdeviceptr many[GRAPH_N_ADDRESSES + 1] = {0};
        Graphs graphs;
        Run run;

        graphs_init(&graphs, &context);
        run_init(&run, 7, 0x1000, 9);
        run.program.number = 1;
        run.program.addresses = many;
        run.program.n_buffers = ARRAY_SIZE(many);
        take_run(&graphs, &run, 0);
        run.buffer = 0x2000;
        take_run(&graphs, &run, 2);
        end(&graphs);
}

/* The object may be another for the same memory. */
static void of_a_program_with_textures_all_is_compared(void **state) {
        Graphs graphs;
        Run run;

        graphs_init(&graphs, &context);
        run_init(&run, 7, 0x1000, 9);
        run.program.number = 1;
        run.program.n_textures = 1;
        take_run(&graphs, &run, 0);
        run.value = 8; /* the handle */
        take_run(&graphs, &run, 1);
        end(&graphs);
}

static void one_that_cannot_be_patched_is_made_anew(void **state) {
        Graphs graphs;
        Graph *graph;

        graphs_init(&graphs, &context);
        graph_release(take(&graphs, 1, 0x1000, 9));
        patch_result = CUDA_ERROR_INVALID_VALUE;
        graph = take(&graphs, 2, 0x1000, 9);
        patch_result = CUDA_SUCCESS;
        assert_given(graph, 2, 0x1000, 9, 0);
        assert_int_equal(graphs.n_made, 2);
        assert_int_equal(graphs.n_evicted, 1);
        graph_release(graph);
        graph = take(&graphs, 2, 0x1000, 9);
        assert_given(graph, 2, 0x1000, 9, 0);
        graph_release(graph);
        end(&graphs);
}

/* A run keeps what it was launched with, and the next on its stream comes behind it. */
static void runs_on_one_stream_share_a_graph(void **state) {
        Graph *graph, *other;
        Graphs graphs;

        graphs_init(&graphs, &context);
        graph = take(&graphs, 1, 0x1000, 9);
        assert_ptr_equal(take(&graphs, 2, 0x1000, 9), graph);
        other = take_on(&graphs, &streams[1], 2, 0x1000, 9);
        assert_ptr_not_equal(other, graph);

        /* One of two runs has ended. */
        graph_release(graph);
        assert_ptr_not_equal(take_on(&graphs, &streams[1], 2, 0x1000, 9), graph);
        graph_release(other);
        graph_release(other);
        graph_release(graph);
        assert_ptr_equal(take_on(&graphs, &streams[1], 3, 0x1000, 9), graph);
        graph_release(graph);
        end(&graphs);
}

static void one_on_its_way_that_cannot_be_patched_is_not_found_again(void **state) {
        Graph *graph, *other;
        Graphs graphs;

        graphs_init(&graphs, &context);
        graph = take(&graphs, 1, 0x1000, 9);
        patch_result = CUDA_ERROR_INVALID_VALUE;
        other = take(&graphs, 2, 0x1000, 9);
        patch_result = CUDA_SUCCESS;
        assert_ptr_not_equal(other, graph);
        graph_release(graph);
        assert_ptr_equal(take(&graphs, 1, 0x1000, 9), other);
        graph_release(other);
        graph_release(other);

        /* It goes when others come, and counts once. */
        assert_int_equal(graphs.n_evicted, 0);
        for (size_t i = 0; i < GRAPHS_MAX - 1; ++i) {
                Failure failure = {0};
                Run run;

                run_init(&run, 1, 0x1000, 9);
                run.steps[0].launch.grid[0] = (unsigned)i + 1;
                assert_int_equal(graphs_take(&graphs, &run.program, &streams[0], &graph, &failure),
                                 0);
                graph_release(graph);
        }
        assert_int_equal(graphs.n_evicted, 1);
        assert_ptr_equal(take(&graphs, 1, 0x1000, 9), other);
        graph_release(other);
        end(&graphs);
}

/* More would need memory, for which the driver may wait for every kernel. */
static void there_are_never_more_than_were_reserved(void **state) {
        Graph *all[GRAPHS_MAX], *graph;
        static const Stream many[GRAPHS_MAX + 1];
        Failure failure = {0};
        Graphs graphs;
        Run run;

        graphs_init(&graphs, &context);
        for (size_t i = 0; i < GRAPHS_MAX; ++i)
                all[i] = take_on(&graphs, &many[i], i, 0x1000, 9);
        assert_int_equal(n_execs, GRAPHS_MAX);
        assert_int_equal(try_on(&graphs, &many[GRAPHS_MAX], 0, 0x1000, 9, &graph), FAILURE_E_SET);
        assert_ptr_equal(take_on(&graphs, &many[3], 0, 0x1000, 9), all[3]);
        graph_release(all[3]);

        /* One of another shape takes the place of the idle one that was not used for longest. */
        graph_release(all[7]);
        graph_release(all[5]);
        run_init(&run, 0, 0x1000, 9);
        run.steps[0].launch.grid[0] = 2;
        assert_int_equal(graphs_take(&graphs, &run.program, &many[GRAPHS_MAX], &all[5], &failure),
                         0);
        assert_int_equal(n_execs, GRAPHS_MAX);
        assert_ptr_equal(take_on(&graphs, &many[GRAPHS_MAX], 7, 0x1000, 9), all[7]);
        for (size_t i = 0; i < GRAPHS_MAX; ++i)
                graph_release(all[i]);
        end(&graphs);
}

static void what_is_reserved_is_all_there_at_once(void **state) {
        uint64_t value = 0;
        void *params[] = {&value};
        Graphs graphs;

        graphs_init(&graphs, &context);
        n_execs_most = 0;
        graphs_reserve(&graphs, (CUfunction)0x100, params);
        assert_int_equal(n_execs_most, GRAPHS_MAX + LAUNCHER_MAX);
        end(&graphs);

        make_result = CUDA_ERROR_OUT_OF_MEMORY;
        graphs_reserve(&graphs, (CUfunction)0x100, params);
        make_result = CUDA_SUCCESS;
        end(&graphs);
}

/* There memory waits for no kernel, and each that fails in turn is to be one that counts (test_injection). */
static void on_the_host_nothing_is_reserved(void **state) {
        uint64_t value = 0;
        void *params[] = {&value};
        Graphs graphs;

        graphs_init(&graphs, &context);
        n_execs_most = 0;
        fake_driver.cpu = true;
        graphs_reserve(&graphs, (CUfunction)0x100, params);
        fake_driver.cpu = false;
        assert_int_equal(n_execs_most, 0);
        end(&graphs);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_run_like_the_last_patches_nothing),
                cmocka_unit_test(only_steps_that_changed_are_patched),
                cmocka_unit_test(the_last_byte_of_an_argument_counts),
                cmocka_unit_test(the_graph_that_has_the_arguments_is_taken),
                cmocka_unit_test(after_memory_has_gone_all_is_patched_once),
                cmocka_unit_test(a_kept_program_knows_its_graph),
                cmocka_unit_test(of_a_program_with_many_buffers_all_is_compared),
                cmocka_unit_test(of_a_program_with_textures_all_is_compared),
                cmocka_unit_test(one_that_cannot_be_patched_is_made_anew),
                cmocka_unit_test(runs_on_one_stream_share_a_graph),
                cmocka_unit_test(one_on_its_way_that_cannot_be_patched_is_not_found_again),
                cmocka_unit_test(there_are_never_more_than_were_reserved),
                cmocka_unit_test(what_is_reserved_is_all_there_at_once),
                cmocka_unit_test(on_the_host_nothing_is_reserved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
