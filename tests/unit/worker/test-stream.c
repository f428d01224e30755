/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/stream.h"

static void an_idle_stream_is_taken_before_another_is_made(void **state) {
        const Stream streams[] = {{.n_busy = 3}, {.n_busy = 0}, {.n_busy = 1}};

        assert_int_equal(stream_least_busy(streams, 3, 16), 1);
}

static void another_stream_is_made_before_two_share_one(void **state) {
        const Stream streams[] = {{.n_busy = 1}, {.n_busy = 1}};

        assert_int_equal(stream_least_busy(streams, 2, 16), 2);
        assert_int_equal(stream_least_busy(NULL, 0, 16), 0);
}

static void the_least_busy_stream_is_shared_when_no_more_may_be_made(void **state) {
        const Stream streams[] = {{.n_busy = 3}, {.n_busy = 2}, {.n_busy = 2}};

        assert_int_equal(stream_least_busy(streams, 3, 3), 1);
}

static void priorities_fall_into_three_classes(void **state) {
        assert_int_equal(stream_class(-100), STREAM_LOW);
        assert_int_equal(stream_class(0), STREAM_NORMAL);
        assert_int_equal(stream_class(1), STREAM_HIGH);
}

/* ---- streams of a driver that tells their priorities ------------------------------------------- */

static CUresult fake_stream_create(CUstream *stream, unsigned flags, int priority) {
        *stream = (CUstream)(intptr_t)priority;
        return CUDA_SUCCESS;
}

static CUresult fake_event_create(CUevent *event, unsigned flags) {
        return CUDA_SUCCESS;
}

static const Driver driver = {
        .cuStreamCreateWithPriority = fake_stream_create,
        .cuEventCreate = fake_event_create,
};

/* Return: the priority of the stream that is chosen for a job's. */
static int chosen(Streams *streams, int job_priority) {
        Failure failure = {0};
        Stream *stream;

        assert_int_equal(streams_choose(streams, stream_class(job_priority), &stream, &failure), 0);
        return (int)(intptr_t)stream->stream;
}

static void normal_work_is_above_low_once_there_is_any(void **state) {
        Context context = {.cu = &driver, .priority_least = 0, .priority_greatest = -5};
        Streams streams = {.context = &context};

        assert_int_equal(chosen(&streams, 0), 0);
        assert_int_equal(chosen(&streams, 7), -5);
        assert_int_equal(chosen(&streams, 0), 0);
        assert_int_equal(chosen(&streams, -1), 0);
        assert_int_equal(chosen(&streams, 0), -2);
        assert_int_equal(chosen(&streams, -1), 0);
        assert_int_equal(chosen(&streams, 7), -5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_idle_stream_is_taken_before_another_is_made),
                cmocka_unit_test(another_stream_is_made_before_two_share_one),
                cmocka_unit_test(the_least_busy_stream_is_shared_when_no_more_may_be_made),
                cmocka_unit_test(priorities_fall_into_three_classes),
                cmocka_unit_test(normal_work_is_above_low_once_there_is_any),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
