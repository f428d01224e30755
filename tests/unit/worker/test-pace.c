/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/pace.h"
#include "worker/stream.h"

static void it_spins_for_a_while_after_an_event_then_naps_longer_and_longer(void **state) {
        uint64_t now_ns = 0, nap_ns, before_ns = 0;
        Pace pace;

        pace_init(&pace, false, 0);
        pace_event(&pace, now_ns);
        assert_int_equal(pace_next(&pace, now_ns + 900000), 0);

        now_ns += 1000000;
        for (int i = 0; i < 400; ++i) {
                nap_ns = pace_next(&pace, now_ns);
                assert_true(nap_ns >= before_ns);
                assert_true(nap_ns > 0 && nap_ns <= 1000000);
                assert_true(nap_ns <= now_ns / 64); /* so late is what ended meanwhile seen */
                now_ns += nap_ns;
                before_ns = nap_ns;
        }
        assert_int_equal(before_ns, 1000000);
        pace_event(&pace, now_ns);
        assert_int_equal(pace_next(&pace, now_ns), 0);
}

static void with_the_cpu_driver_it_leaves_the_cores_to_the_kernels(void **state) {
        Pace pace;

        pace_init(&pace, true, 0);
        pace_event(&pace, 0);
        assert_true(pace_next(&pace, 50000) > 0);
}

static void with_nothing_in_flight_it_spins_as_long_as_it_is_told(void **state) {
        Pace pace;

        pace_init(&pace, false, 0);
        pace_event(&pace, 7);
        assert_true(pace_may_sleep(&pace, 7));

        pace_init(&pace, false, 100000);
        pace_event(&pace, 7);
        assert_false(pace_may_sleep(&pace, 100006));
        assert_true(pace_may_sleep(&pace, 100007));
}

static void the_first_idle_stream_is_taken(void **state) {
        const Stream streams[] = {{.n_busy = 3}, {.n_busy = 0}, {.n_busy = 0}};

        assert_int_equal(stream_least_busy(streams, 3), 1);
        assert_int_equal(stream_least_busy(streams, 1), 0);
}

static void the_least_busy_stream_is_shared(void **state) {
        const Stream streams[] = {{.n_busy = 3}, {.n_busy = 2}, {.n_busy = 2}};

        assert_int_equal(stream_least_busy(streams, 3), 1);
}

static CUresult alloc_result, stream_result;

static CUresult fake_alloc(void **ret_memory, size_t n_bytes, unsigned flags) {
        static StreamWords words[_STREAM_CLASS_N * STREAMS_MAX + 1];

        assert_int_equal(n_bytes, sizeof(words));
        *ret_memory = words;
        return alloc_result;
}

static CUresult fake_pointer(CUdeviceptr *ret_pointer, void *memory, unsigned flags) {
        *ret_pointer = 0x1000;
        return CUDA_SUCCESS;
}

static CUresult fake_stream(CUstream *ret_stream, unsigned flags, int priority) {
        *ret_stream = (CUstream)0x1;
        return stream_result;
}

static CUresult fake_event(CUevent *ret_event, unsigned flags) {
        *ret_event = (CUevent)0x1;
        return CUDA_SUCCESS;
}

static CUresult fake_text(CUresult result, const char **ret_text) {
        *ret_text = "so it is";
        return CUDA_SUCCESS;
}

static void assert_no_streams(Gpuq__V1__Code code, bool is_device) {
        static const Driver driver = {
                .cuMemHostAlloc = fake_alloc,
                .cuMemHostGetDevicePointer = fake_pointer,
                .cuStreamCreateWithPriority = fake_stream,
                .cuEventCreate = fake_event,
                .cuGetErrorName = fake_text,
                .cuGetErrorString = fake_text,
        };
        Context context = {.cu = &driver};
        Streams streams = {0};
        Failure failure = {0};

        assert_int_equal(streams_init(&streams, &context, &failure), code ? FAILURE_E_SET : 0);
        assert_int_equal(failure.code, code);
        assert_int_equal(failure.is_device, is_device);
        failure_clear(&failure);
}

/* The supervisor makes room where it is memory, and has a look at the device where that is to blame. */
static void a_worker_without_streams_says_whether_it_is_for_memory(void **state) {
        assert_no_streams(GPUQ__V1__CODE__OK, false);
        alloc_result = CUDA_ERROR_OUT_OF_MEMORY;
        assert_no_streams(GPUQ__V1__CODE__E_MEMORY, false);
        alloc_result = CUDA_SUCCESS;
        stream_result = CUDA_ERROR_OUT_OF_MEMORY;
        assert_no_streams(GPUQ__V1__CODE__E_MEMORY, false);
        stream_result = CUDA_ERROR_DEVICE_UNAVAILABLE;
        assert_no_streams(GPUQ__V1__CODE__E_NO_DEVICE, true);
        stream_result = CUDA_SUCCESS;
}

static void priorities_fall_into_three_classes(void **state) {
        assert_int_equal(stream_class(-100), STREAM_LOW);
        assert_int_equal(stream_class(0), STREAM_NORMAL);
        assert_int_equal(stream_class(1), STREAM_HIGH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_spins_for_a_while_after_an_event_then_naps_longer_and_longer),
                cmocka_unit_test(with_the_cpu_driver_it_leaves_the_cores_to_the_kernels),
                cmocka_unit_test(with_nothing_in_flight_it_spins_as_long_as_it_is_told),
                cmocka_unit_test(the_first_idle_stream_is_taken),
                cmocka_unit_test(the_least_busy_stream_is_shared),
                cmocka_unit_test(a_worker_without_streams_says_whether_it_is_for_memory),
                cmocka_unit_test(priorities_fall_into_three_classes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
