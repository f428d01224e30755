/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/stream.h"

enum { MIB = 1 << 20 };

/* ---- a driver whose memory is only counted ------------------------------------------------------ */

static size_t sizes[256]; /* by address: 1, 2, … */
static size_t n_kept, n_kept_most;
static unsigned n_taken;

static CUresult fake_alloc(CUdeviceptr *ret, size_t n_bytes, CUmemoryPool pool, CUstream stream) {
        sizes[++n_taken] = n_bytes;
        *ret = n_taken;
        n_kept += n_bytes;
        n_kept_most = n_kept > n_kept_most ? n_kept : n_kept_most;
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
        n_kept = n_kept_most = n_taken = 0;
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
static void busy_streams_keep_so_much_and_no_more(void **state) {
        Ticket tickets[STREAMS_MAX];
        CUdeviceptr scratch;
        unsigned n;

        for (n = 0; n < STREAMS_MAX; ++n) {
                tickets[n] = ticket_take(&streams, normal(n));
                if (stream_scratch(&streams, normal(n), 4 * MIB, &scratch) != CUDA_SUCCESS)
                        break;
        }
        assert_int_equal(n, STREAMS_SCRATCH_MAX / (4 * MIB));
        assert_int_equal(n_kept_most, STREAMS_SCRATCH_MAX);
        ticket_release(&streams, &tickets[n]);

        /* Nobody idle has any. Then somebody has. */
        assert_false(streams_drop_scratch(&streams));
        ticket_release(&streams, &tickets[0]);
        assert_true(streams_drop_scratch(&streams));
        assert_int_equal(stream_scratch(&streams, normal(n), 4 * MIB, &scratch), CUDA_SUCCESS);
        assert_int_equal(n_kept_most, STREAMS_SCRATCH_MAX);
        assert_int_equal(streams.n_scratch, n_kept);
}

static void what_is_alone_gets_all_it_needs(void **state) {
        CUdeviceptr scratch;

        for (unsigned i = 0; i < 6; ++i)
                assert_int_equal(stream_scratch(&streams, normal(i), 4 * MIB, &scratch),
                                 CUDA_SUCCESS);
        assert_int_equal(stream_scratch(&streams, normal(6), 2 * STREAMS_SCRATCH_MAX, &scratch),
                         CUDA_SUCCESS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(scratch_is_kept_and_grows, begin),
                cmocka_unit_test_setup(busy_streams_keep_so_much_and_no_more, begin),
                cmocka_unit_test_setup(what_is_alone_gets_all_it_needs, begin),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
