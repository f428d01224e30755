/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/stream.h"
#include "worker/wide.h"

enum { MIB = 1 << 20 };

/* ---- a driver whose memory is only counted ------------------------------------------------------ */

static size_t sizes[256]; /* by address: 1, 2, … */
static size_t n_kept;
static unsigned n_taken;

static CUresult fake_alloc(CUdeviceptr *ret, size_t n_bytes, CUmemoryPool pool, CUstream stream) {
        sizes[++n_taken] = n_bytes;
        *ret = n_taken;
        n_kept += n_bytes;
        return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr memory, CUstream stream) {
        n_kept -= sizes[memory];
        return CUDA_SUCCESS;
}

static CUresult zero_result = CUDA_SUCCESS;

static CUresult fake_zero(CUdeviceptr memory, unsigned char value, size_t n, CUstream stream) {
        assert_int_equal(value, 0);
        assert_int_equal(n, sizes[memory]);
        return zero_result;
}

static Driver driver = {
        .cuMemAllocFromPoolAsync = fake_alloc,
        .cuMemFreeAsync = fake_free,
        .cuMemsetD8Async = fake_zero,
};
static Context context = {.cu = &driver};
static Streams streams;

static int begin(void **state) {
        streams = (Streams){.context = &context};
        n_kept = n_taken = 0;
        return 0;
}

static Stream *normal(unsigned i) {
        return &streams.streams[STREAM_NORMAL][i];
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void scratch_is_kept_and_grows(void **state) {
        CUdeviceptr first, second, third;

        assert_int_equal(stream_scratch(&streams, normal(0), 300000, &first), CUDA_SUCCESS);
        assert_int_equal(stream_scratch(&streams, normal(0), 500000, &second), CUDA_SUCCESS);
        assert_int_equal(second, first);
        assert_int_equal(stream_scratch(&streams, normal(0), 600000, &third), CUDA_SUCCESS);
        assert_int_not_equal(third, first);
        assert_int_equal(n_kept, MIB);
        assert_int_equal(streams.n_scratch, n_kept);
}

/* Sixteen streams with 4 MiB each had the driver take a second 32 MiB for its pool. */
static void all_together_should_keep_so_much_and_no_more(void **state) {
        CUdeviceptr scratch;
        unsigned n;

        for (n = 0; streams_may_keep(&streams, normal(n), 4 * MIB); ++n) {
                assert_int_equal(stream_scratch(&streams, normal(n), 4 * MIB, &scratch),
                                 CUDA_SUCCESS);
                ticket_take(&streams, normal(n));
        }
        assert_int_equal(n, STREAMS_SCRATCH_MAX / (4 * MIB));
        assert_int_equal(n_kept, STREAMS_SCRATCH_MAX);
        assert_true(streams_may_keep(&streams, normal(0), 3 * MIB)); /* it has that */
        assert_false(streams_may_keep(&streams, normal(n), 1));

        /* Nobody idle has any. Then somebody has. */
        assert_false(streams_drop_scratch(&streams));
        ticket_release(&streams, &(Ticket){.stream = normal(0)});
        assert_true(streams_drop_scratch(&streams));
        assert_true(streams_may_keep(&streams, normal(n), 4 * MIB));
        assert_int_equal(streams.n_scratch, n_kept);
}

static void each_stream_has_memory_for_wide_launches_until_it_is_dropped(void **state) {
        CUdeviceptr first = stream_wide(&streams, normal(0));

        assert_int_not_equal(first, 0);
        assert_int_equal(stream_wide(&streams, normal(0)), first);
        assert_int_not_equal(stream_wide(&streams, normal(1)), first);
        assert_int_equal(n_kept, 2 * WIDE_BYTES);

        ticket_take(&streams, normal(1));
        assert_true(streams_drop_scratch(&streams));
        assert_int_equal(n_kept, WIDE_BYTES); /* that of the busy stream */
        assert_int_not_equal(stream_wide(&streams, normal(0)), first);
}

static void without_zeros_there_is_no_memory_for_wide_launches(void **state) {
        zero_result = CUDA_ERROR_INVALID_VALUE;
        assert_int_equal(stream_wide(&streams, normal(0)), 0);
        zero_result = CUDA_SUCCESS;
        assert_int_equal(n_kept, 0);
        assert_int_not_equal(stream_wide(&streams, normal(0)), 0);
}

/* ---- which, and when there are none ---- */

static void the_first_idle_stream_is_taken(void **state) {
        const Stream some[] = {{.n_busy = 3}, {.n_busy = 0}, {.n_busy = 0}};

        assert_int_equal(stream_least_busy(some, 3), 1);
        assert_int_equal(stream_least_busy(some, 1), 0);
}

static void the_least_busy_stream_is_shared(void **state) {
        const Stream some[] = {{.n_busy = 3}, {.n_busy = 2}, {.n_busy = 2}};

        assert_int_equal(stream_least_busy(some, 3), 1);
}

static CUresult alloc_result, stream_result;

static CUresult fake_host_alloc(void **ret_memory, size_t n_bytes, unsigned flags) {
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
        static const Driver maker = {
                .cuMemHostAlloc = fake_host_alloc,
                .cuMemHostGetDevicePointer = fake_pointer,
                .cuStreamCreateWithPriority = fake_stream,
                .cuEventCreate = fake_event,
                .cuGetErrorName = fake_text,
                .cuGetErrorString = fake_text,
        };
        Context own = {.cu = &maker};
        Streams made = {0};
        Failure failure = {0};

        assert_int_equal(streams_init(&made, &own, &failure), code ? FAILURE_E_SET : 0);
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
                cmocka_unit_test_setup(scratch_is_kept_and_grows, begin),
                cmocka_unit_test_setup(all_together_should_keep_so_much_and_no_more, begin),
                cmocka_unit_test_setup(each_stream_has_memory_for_wide_launches_until_it_is_dropped,
                                       begin),
                cmocka_unit_test_setup(without_zeros_there_is_no_memory_for_wide_launches, begin),
                cmocka_unit_test(the_first_idle_stream_is_taken),
                cmocka_unit_test(the_least_busy_stream_is_shared),
                cmocka_unit_test(a_worker_without_streams_says_whether_it_is_for_memory),
                cmocka_unit_test(priorities_fall_into_three_classes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
