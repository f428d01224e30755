/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/stream.h"

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

static Driver driver = {.cuMemAllocFromPoolAsync = fake_alloc, .cuMemFreeAsync = fake_free};
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(scratch_is_kept_and_grows, begin),
                cmocka_unit_test_setup(all_together_should_keep_so_much_and_no_more, begin),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
