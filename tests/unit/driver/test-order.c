/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, events and graphs of the CPU driver: what runs at once and what after what.
 */
#include "fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/macro.h"

/* Each kernel waits for what the other stream's does: only side by side can both end. */
FIXTURE_TEST(two_streams_run_at_once) {
        Fixture *fixture = *state;
        CUdeviceptr flags = fixture_alloc(fixture, NULL, 16), second = flags + 4;
        CUdeviceptr seen[2] = {flags + 8, flags + 12};
        int one = 1, result[4];

        assert_ok(
                fixture_launch(fixture, 0, "await_flag", 1, 1, 0, PARAMS(&flags, &one, &seen[0])));
        assert_ok(fixture_launch(fixture, 0, "set_flag", 1, 1, 0, PARAMS(&second, &one)));
        assert_ok(fixture_launch(fixture, 1, "set_flag", 1, 1, 0, PARAMS(&flags, &one)));
        assert_ok(
                fixture_launch(fixture, 1, "await_flag", 1, 1, 0, PARAMS(&second, &one, &seen[1])));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[1]));
        fixture_fetch(fixture, result, flags, sizeof(result));
        for (int i = 0; i < 4; i++)
                assert_int_equal(result[i], 1);
}

static unsigned count_threads(void) {
        DIR *folder = opendir("/proc/self/task");
        unsigned n = 0;

        assert_non_null(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* A worker makes all it may need at its start. */
FIXTURE_TEST(streams_that_never_ran_anything_cost_no_thread_and_are_idle) {
        unsigned n_threads = count_threads();
        CUstream streams[48];
        CUevent event;

        for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
                assert_ok(
                        driver->cuStreamCreateWithPriority(&streams[i], CU_STREAM_NON_BLOCKING, 0));
        assert_true(count_threads() <= n_threads); /* one of an earlier test may just end */
        assert_ok(driver->cuStreamQuery(streams[0]));
        assert_ok(driver->cuStreamSynchronize(streams[0]));
        assert_ok(driver->cuCtxSynchronize());

        /* Two of them run something, half of the others go; what is left goes with the context. */
        assert_ok(driver->cuEventCreate(&event, 0));
        assert_ok(driver->cuEventRecord(event, streams[0]));
        assert_ok(driver->cuStreamWaitEvent(streams[1], event, 0));
        assert_ok(driver->cuStreamSynchronize(streams[1]));
        for (size_t i = 0; i < ARRAY_SIZE(streams) / 2; i++)
                assert_ok(driver->cuStreamDestroy(streams[i]));
        assert_ok(driver->cuCtxSynchronize());
}

FIXTURE_TEST(a_stream_waits_for_an_event_of_another) {
        Fixture *fixture = *state;
        CUdeviceptr x = fixture_alloc(fixture, NULL, 8), seen = x + 4;
        int one = 1, two = 2, result[2];
        CUevent event;

        assert_ok(driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        assert_ok(fixture_launch(fixture, 0, "await_flag", 1, 1, 0, PARAMS(&x, &one, &seen)));
        assert_ok(driver->cuEventRecord(event, fixture->streams[0]));
        assert_ok(driver->cuStreamWaitEvent(fixture->streams[1], event, 0));
        /* If it did not wait, the first kernel would never see 1 and hang. */
        assert_ok(fixture_launch(fixture, 1, "set_flag", 1, 1, 0, PARAMS(&x, &two)));
        assert_int_equal(driver->cuEventQuery(event), CUDA_ERROR_NOT_READY);
        assert_int_equal(driver->cuStreamQuery(fixture->streams[1]), CUDA_ERROR_NOT_READY);
        __atomic_store_n((int *)(uintptr_t)x, 1, __ATOMIC_RELEASE);
        assert_ok(driver->cuStreamSynchronize(fixture->streams[1]));
        assert_ok(driver->cuEventQuery(event));
        assert_ok(driver->cuStreamQuery(fixture->streams[1]));
        fixture_fetch(fixture, result, x, sizeof(result));
        assert_int_equal(result[0], 2);
        assert_int_equal(result[1], 1);
        assert_ok(driver->cuEventDestroy(event));
}

FIXTURE_TEST(events_tell_the_time_between_them) {
        Fixture *fixture = *state;
        CUevent start, end, untimed;
        struct timespec moment = {.tv_nsec = 20000000};
        CUdeviceptr x = fixture_alloc(fixture, NULL, 8), seen = x + 4;
        float milliseconds;
        int one = 1;

        assert_ok(driver->cuEventCreate(&start, 0));
        assert_ok(driver->cuEventCreate(&end, 0));
        assert_ok(driver->cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
        assert_int_equal(driver->cuEventElapsedTime(&milliseconds, start, end),
                         CUDA_ERROR_INVALID_HANDLE);
        assert_ok(driver->cuEventRecord(start, fixture->streams[0]));
        assert_ok(fixture_launch(fixture, 0, "await_flag", 1, 1, 0, PARAMS(&x, &one, &seen)));
        assert_ok(driver->cuEventRecord(end, fixture->streams[0]));
        assert_ok(driver->cuEventRecord(untimed, fixture->streams[0]));
        assert_int_equal(driver->cuEventElapsedTime(&milliseconds, start, end),
                         CUDA_ERROR_NOT_READY);
        while (driver->cuEventQuery(start) == CUDA_ERROR_NOT_READY)
                ;
        nanosleep(&moment, NULL);
        __atomic_store_n((int *)(uintptr_t)x, 1, __ATOMIC_RELEASE);
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        assert_ok(driver->cuEventElapsedTime(&milliseconds, start, end));
        assert_true(milliseconds >= 20.0f && milliseconds < 10000.0f);
        assert_int_equal(driver->cuEventElapsedTime(&milliseconds, start, untimed),
                         CUDA_ERROR_INVALID_HANDLE);
}

FIXTURE_TEST(an_event_that_was_never_recorded_is_not_waited_for) {
        Fixture *fixture = *state;
        CUevent event;

        assert_ok(driver->cuEventCreate(&event, 0));
        assert_ok(driver->cuEventQuery(event));
        assert_ok(driver->cuStreamWaitEvent(fixture->streams[0], event, 0));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
}

FIXTURE_TEST(a_stream_writes_a_flag_after_its_work) {
        static _Alignas(4096) uint32_t flags[1024];
        Fixture *fixture = *state;
        CUdeviceptr word, x = fixture_alloc(fixture, NULL, 4);
        int value = 77;

        memset(flags, 0, sizeof(flags));
        assert_ok(driver->cuMemHostRegister(flags, sizeof(flags), CU_MEMHOSTREGISTER_DEVICEMAP));
        assert_ok(driver->cuMemHostGetDevicePointer(&word, flags, 0));
        for (uint32_t i = 1; i <= 100; i++) {
                value = (int)i;
                assert_ok(fixture_launch(fixture, 0, "set_flag", 1, 1, 0, PARAMS(&x, &value)));
                assert_ok(driver->cuMemcpyDtoHAsync(flags + 1, x, 4, fixture->streams[0]));
                assert_ok(driver->cuStreamWriteValue32(fixture->streams[0], word, i, 0));
                while (__atomic_load_n(&flags[0], __ATOMIC_ACQUIRE) != i)
                        ;
                assert_int_equal(flags[1], i);
        }
        assert_int_equal(driver->cuStreamWriteValue32(fixture->streams[0], word + 2, 1, 0),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuMemHostUnregister(flags));
}

/* ---- graphs ------------------------------------------------------------------------------- */

static CUDA_MEMCPY3D copy_params(CUmemorytype to_type, void *to, CUmemorytype from_type,
                                 const void *from, size_t n_bytes) {
        return (CUDA_MEMCPY3D){
                .srcMemoryType = from_type,
                .srcHost = from,
                .srcDevice = (CUdeviceptr)from,
                .dstMemoryType = to_type,
                .dstHost = to,
                .dstDevice = (CUdeviceptr)to,
                .WidthInBytes = n_bytes,
                .Height = 1,
                .Depth = 1,
        };
}

FIXTURE_TEST(a_graph_runs_its_chain_and_takes_new_parameters) {
        Fixture *fixture = *state;
        CUdeviceptr x = fixture_alloc(fixture, NULL, 100 * sizeof(float));
        float in[100], out[100], scale = 2, offset = 1;
        CUDA_KERNEL_NODE_PARAMS kernel = {
                .func = fixture_function(fixture, "affine"),
                .gridDimX = 1,
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = 128,
                .blockDimY = 1,
                .blockDimZ = 1,
        };
        CUDA_MEMCPY3D copy_in = copy_params(CU_MEMORYTYPE_DEVICE, (void *)(uintptr_t)x,
                                            CU_MEMORYTYPE_HOST, in, sizeof(in));
        CUDA_MEMCPY3D copy_out = copy_params(CU_MEMORYTYPE_HOST, out, CU_MEMORYTYPE_DEVICE,
                                             (void *)(uintptr_t)x, sizeof(out));
        CUDA_MEMSET_NODE_PARAMS fill = {
                .dst = x, .value = 0, .elementSize = 4, .width = 10, .height = 1};
        CUgraphNode nodes[4];
        CUgraphExec exec;
        CUgraph graph;
        int n = 100;

        kernel.kernelParams = PARAMS(&x, &scale, &offset, &n);
        for (int i = 0; i < 100; i++)
                in[i] = (float)i;
        assert_ok(driver->cuGraphCreate(&graph, 0));
        assert_ok(driver->cuGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &copy_in,
                                               fixture->context));
        assert_ok(driver->cuGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel));
        assert_ok(driver->cuGraphAddMemsetNode(&nodes[2], graph, &nodes[1], 1, &fill,
                                               fixture->context));
        assert_ok(driver->cuGraphAddMemcpyNode(&nodes[3], graph, &nodes[2], 1, &copy_out,
                                               fixture->context));
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        for (int i = 0; i < 100; i++)
                assert_true(out[i] == (i < 10 ? 0 : 2 * (float)i + 1));

        /* New parameters count from the next launch on; the one before still has its own. */
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        scale = 3;
        fill.width = 1;
        assert_ok(driver->cuGraphExecKernelNodeSetParams(exec, nodes[1], &kernel));
        assert_ok(driver->cuGraphExecMemsetNodeSetParams(exec, nodes[2], &fill, fixture->context));
        copy_in.WidthInBytes = 0;
        assert_ok(
                driver->cuGraphExecMemcpyNodeSetParams(exec, nodes[0], &copy_in, fixture->context));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        for (int i = 0; i < 100; i++)
                assert_true(out[i] == (i < 1 ? 0 : i < 10 ? 1 : 3 * (2 * (float)i + 1) + 1));

        assert_int_equal(driver->cuGraphExecKernelNodeSetParams(exec, nodes[0], &kernel),
                         CUDA_ERROR_INVALID_VALUE);
        kernel.blockDimX = 2000;
        assert_int_equal(driver->cuGraphExecKernelNodeSetParams(exec, nodes[1], &kernel),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuGraphExecDestroy(exec));
        assert_ok(driver->cuGraphDestroy(graph));
}

FIXTURE_TEST(a_graph_of_a_thousand_nodes_runs_in_order) {
        Fixture *fixture = *state;
        float x = 1, scale = -1, offset = 1;
        CUdeviceptr a = fixture_alloc(fixture, &x, sizeof(x));
        CUDA_KERNEL_NODE_PARAMS kernel = {
                .func = fixture_function(fixture, "affine"),
                .gridDimX = 1,
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = 1,
                .blockDimY = 1,
                .blockDimZ = 1,
        };
        CUgraphNode node = NULL;
        CUgraphExec exec;
        CUgraph graph;
        int n = 1;

        kernel.kernelParams = PARAMS(&a, &scale, &offset, &n);
        assert_ok(driver->cuGraphCreate(&graph, 0));
        for (int i = 0; i < 1000; i++) {
                offset = (float)i;
                assert_ok(driver->cuGraphAddKernelNode(&node, graph, &node, i > 0, &kernel));
        }
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphDestroy(graph));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        /* An exec that is destroyed still runs. */
        assert_ok(driver->cuGraphExecDestroy(exec));
        fixture_fetch(fixture, &x, a, sizeof(x));
        assert_true(x == 501);
}

FIXTURE_TEST(a_kernel_node_can_be_cooperative) {
        Fixture *fixture = *state;
        CUdeviceptr x = fixture_alloc(fixture, NULL, 12), out = fixture_alloc(fixture, NULL, 8);
        CUkernelNodeAttrValue value = {.cooperative = 1};
        CUDA_KERNEL_NODE_PARAMS kernel = {
                .func = fixture_function(fixture, "grid_wait"),
                .gridDimX = 6,
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = 32,
                .blockDimY = 1,
                .blockDimZ = 1,
        };
        int rounds = 3, result[2];
        CUgraphExec exec;
        CUgraphNode node;
        CUgraph graph;

        kernel.kernelParams = PARAMS(&x, &out, &rounds);
        assert_ok(driver->cuGraphCreate(&graph, 0));
        assert_ok(driver->cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
        assert_ok(driver->cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                        &value));
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        fixture_fetch(fixture, result, out, sizeof(result));
        assert_int_equal(result[0], 6);
        assert_int_equal(result[1], 0);
        assert_ok(driver->cuGraphExecDestroy(exec));
        assert_ok(driver->cuGraphDestroy(graph));
}

/* ---- captured work ------------------------------------------------------------------- */

/* A graph of one fill of 4 bytes. */
static CUgraph capture_fill(Fixture *fixture, CUdeviceptr to, unsigned char value) {
        CUgraph graph;

        assert_ok(
                driver->cuStreamBeginCapture(fixture->streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
        assert_ok(driver->cuMemsetD8Async(to, value, 4, fixture->streams[0]));
        assert_ok(driver->cuStreamEndCapture(fixture->streams[0], &graph));
        return graph;
}

static int fetch_word(Fixture *fixture, CUdeviceptr from) {
        int word;

        fixture_fetch(fixture, &word, from, sizeof(word));
        return word;
}

FIXTURE_TEST(captured_work_runs_with_its_graph_alone) {
        Fixture *fixture = *state;
        int zero = 0;
        CUdeviceptr x = fixture_alloc(fixture, &zero, sizeof(zero));
        CUgraph graph = capture_fill(fixture, x, 1);
        CUgraphExec exec;

        assert_int_equal(fetch_word(fixture, x), 0);
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_int_equal(fetch_word(fixture, x), 0x01010101);
        assert_ok(
                driver->cuMemsetD8Async(x, 2, 4, fixture->streams[0])); /* not captured any more */
        assert_int_equal(fetch_word(fixture, x), 0x02020202);
        assert_ok(driver->cuGraphExecDestroy(exec));
        assert_ok(driver->cuGraphDestroy(graph));
}

FIXTURE_TEST(a_graph_within_a_graph_runs_in_its_place_and_can_be_replaced) {
        Fixture *fixture = *state;
        int zero[2] = {0};
        CUdeviceptr x = fixture_alloc(fixture, zero, sizeof(zero));
        CUgraph child = capture_fill(fixture, x, 3), other = capture_fill(fixture, x, 4), graph;
        CUDA_MEMCPY3D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = x,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = x + 4,
                .WidthInBytes = 4,
                .Height = 1,
                .Depth = 1,
        };
        CUgraphNode first, second;
        CUgraphExec exec;

        assert_ok(driver->cuGraphCreate(&graph, 0));
        assert_ok(driver->cuGraphAddChildGraphNode(&first, graph, NULL, 0, child));
        assert_ok(driver->cuGraphAddMemcpyNode(&second, graph, &first, 1, &copy, fixture->context));
        assert_ok(driver->cuGraphDestroy(child)); /* it was copied */
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_int_equal(fetch_word(fixture, x + 4), 0x03030303);

        assert_ok(driver->cuGraphExecChildGraphNodeSetParams(exec, first, other));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_int_equal(fetch_word(fixture, x + 4), 0x04040404);
        assert_int_equal(driver->cuGraphExecChildGraphNodeSetParams(exec, second, other),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuGraphExecDestroy(exec));
        assert_ok(driver->cuGraphDestroy(graph));
        assert_ok(driver->cuGraphDestroy(other));
}

FIXTURE_TEST(a_capture_that_does_not_fit_the_streams_state_is_refused) {
        Fixture *fixture = *state;
        CUgraph graph;

        assert_int_equal(driver->cuStreamEndCapture(fixture->streams[0], &graph),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(
                driver->cuStreamBeginCapture(fixture->streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
        assert_int_equal(
                driver->cuStreamBeginCapture(fixture->streams[0], CU_STREAM_CAPTURE_MODE_RELAXED),
                CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuStreamEndCapture(fixture->streams[0], &graph));
        assert_ok(driver->cuGraphDestroy(graph));
}

/* ---- calls of the program ------------------------------------------------------------- */

typedef struct Step {
        int *from, *to;
        unsigned char rest[300];
} Step;

static CUresult add_one(void *data) {
        Step *step = data;

        *step->to = *step->from + 1;
        return CUDA_SUCCESS;
}

static CUresult reach_nowhere(void *data) {
        return **(volatile int **)data ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/* The driver has a copy of the data, also when the call is in a graph. */
FIXTURE_TEST(a_call_is_made_in_its_streams_order_with_a_copy_of_its_data) {
        Fixture *fixture = *state;
        int word = 40, *memory;
        CUdeviceptr x = fixture_alloc(fixture, &word, sizeof(word));
        CUgraph graph;
        CUgraphExec exec;

        memory = (int *)(uintptr_t)x;
        for (int i = 0; i < 2; i++) {
                Step step = {.from = memory, .to = memory};

                if (i == 1)
                        assert_ok(driver->cuStreamBeginCapture(fixture->streams[0],
                                                               CU_STREAM_CAPTURE_MODE_RELAXED));
                assert_ok(driver->gpuq_cpu_call(fixture->streams[0], add_one, &step, sizeof(step)));
                memset(&step, 0xff, sizeof(step));
        }
        assert_ok(driver->cuStreamEndCapture(fixture->streams[0], &graph));
        assert_int_equal(fetch_word(fixture, x), 41);
        assert_ok(driver->cuGraphInstantiateWithFlags(&exec, graph, 0));
        assert_ok(driver->cuGraphDestroy(graph));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_ok(driver->cuGraphLaunch(exec, fixture->streams[0]));
        assert_int_equal(fetch_word(fixture, x), 43);
        assert_ok(driver->cuGraphExecDestroy(exec));
}

FIXTURE_TEST(a_call_that_reaches_nowhere_is_a_fault_of_the_context) {
        Fixture *fixture = *state;
        const int *nowhere = (const int *)16;

        assert_ok(driver->gpuq_cpu_call(fixture->streams[0], reach_nowhere, &nowhere,
                                        sizeof(nowhere)));
        assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]),
                         CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(two_streams_run_at_once),
                TEST(streams_that_never_ran_anything_cost_no_thread_and_are_idle),
                TEST(a_stream_waits_for_an_event_of_another),
                TEST(events_tell_the_time_between_them),
                TEST(an_event_that_was_never_recorded_is_not_waited_for),
                TEST(a_stream_writes_a_flag_after_its_work),
                TEST(a_graph_runs_its_chain_and_takes_new_parameters),
                TEST(a_graph_of_a_thousand_nodes_runs_in_order),
                TEST(a_kernel_node_can_be_cooperative),
                TEST(captured_work_runs_with_its_graph_alone),
                TEST(a_graph_within_a_graph_runs_in_its_place_and_can_be_replaced),
                TEST(a_capture_that_does_not_fit_the_streams_state_is_refused),
                TEST(a_call_is_made_in_its_streams_order_with_a_copy_of_its_data),
                TEST(a_call_that_reaches_nowhere_is_a_fault_of_the_context),
        };

        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
