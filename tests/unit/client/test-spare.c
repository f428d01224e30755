/* SPDX-License-Identifier: Apache-2.0 */

#include "support.h"

#include "client/lib/memory/spare.h"

#define LARGE ((size_t)4 << 20)

static int64_t passed_us; /* beyond what the clock says */

int64_t __real_client_now_us(void);
int64_t __wrap_client_now_us(void);

int64_t __wrap_client_now_us(void) {
        return __real_client_now_us() + passed_us;
}

static gpuq_buffer *made(Session *session, size_t size) {
        gpuq_buffer *buffer = NULL;

        assert_ok(gpuq_buffer_new(session->client, size, &buffer));
        return buffer;
}

static unsigned n_arenas(Session *session) {
        return fake_counts(session->fake).n_arenas;
}

/* Any call does: time is looked at when the client is used. */
static void use(Session *session) {
        gpuq_dispatch(session->client, 0);
}

static void freed_large_buffer_serves_the_next(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer = made(session, LARGE);
        uint8_t *data = gpuq_buffer_data(buffer);

        memset(data, 0xff, LARGE);
        gpuq_buffer_free(buffer);

        buffer = made(session, LARGE - 5000);
        assert_ptr_equal(gpuq_buffer_data(buffer), data);
        for (size_t i = 0; i < LARGE - 5000; i++)
                assert_int_equal(data[i], 0);
        memset(data, 0xff, LARGE - 5000);
        gpuq_buffer_free(buffer);

        buffer = made(session, LARGE);
        for (size_t i = 0; i < LARGE; i++)
                assert_int_equal(data[i], 0);
        gpuq_buffer_free(buffer);
        assert_int_equal(n_arenas(session), 1);
}

static void spare_that_would_be_half_empty_is_left(void **state) {
        Session *session = *state;

        gpuq_buffer_free(made(session, 2 * LARGE));
        gpuq_buffer_free(made(session, LARGE));
        gpuq_buffer_free(made(session, 4 * LARGE));
        assert_int_equal(n_arenas(session), 3);
        gpuq_buffer_free(made(session, 2 * LARGE));
        assert_int_equal(n_arenas(session), 3);
}

static void small_and_device_buffers_leave_spares_alone(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer;

        gpuq_buffer_free(made(session, LARGE));
        gpuq_buffer_free(made(session, LARGE / 8));
        assert_ok(gpuq_buffer_new_device(session->client, LARGE, 0, &buffer));
        assert_int_equal(n_arenas(session), 3);
        gpuq_buffer_free(buffer);
        fake_await(session->fake, n_closes, 1); /* a device's is no spare */
}

static void spares_are_bounded_in_bytes(void **state) {
        Session *session = *state;
        gpuq_buffer *third = made(session, SPARE_MAX_BYTES / 4);

        gpuq_buffer_free(made(session, SPARE_MAX_BYTES / 2));
        gpuq_buffer_free(made(session, SPARE_MAX_BYTES / 16 * 5));
        assert_int_equal(fake_counts(session->fake).n_closes, 0);
        gpuq_buffer_free(third);
        fake_await(session->fake, n_closes, 1);
        assert_int_equal(fake_counts(session->fake).arena_bytes, SPARE_MAX_BYTES / 16 * 9);

        gpuq_buffer_free(made(session, SPARE_MAX_BYTES + 1));
        fake_await(session->fake, n_closes, 2);
        gpuq_buffer_free(made(session, SPARE_MAX_BYTES / 4));
        assert_int_equal(n_arenas(session), 4);
}

static void spares_are_bounded_in_number(void **state) {
        Session *session = *state;
        gpuq_buffer *buffers[SPARE_MAX_N + 2];

        for (unsigned i = 0; i < ARRAY_SIZE(buffers); i++)
                buffers[i] = made(session, 1 << 20);
        for (unsigned i = 0; i < ARRAY_SIZE(buffers); i++)
                gpuq_buffer_free(buffers[i]);
        fake_await(session->fake, n_closes, 2);
        assert_int_equal(fake_counts(session->fake).arena_bytes, SPARE_MAX_N << 20);
}

static void spare_of_no_use_for_long_is_closed(void **state) {
        Session *session = *state;

        gpuq_buffer_free(made(session, LARGE));
        passed_us += SPARE_MAX_US / 2;
        gpuq_buffer_free(made(session, 2 * LARGE));
        use(session);
        assert_int_equal(fake_counts(session->fake).n_closes, 0);

        passed_us += SPARE_MAX_US / 2 + 1;
        use(session);
        fake_await(session->fake, n_closes, 1);
        assert_int_equal(fake_counts(session->fake).arena_bytes, 2 * LARGE);

        passed_us += SPARE_MAX_US / 2;
        use(session);
        fake_await(session->fake, n_closes, 2);
        gpuq_buffer_free(made(session, LARGE));
        assert_int_equal(n_arenas(session), 3);
}

static void spares_go_before_a_quota_is_told(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer;

        fake_set(session->fake, (FakeManners){.arena_bytes_max = 4 * LARGE});
        gpuq_buffer_free(made(session, LARGE));
        gpuq_buffer_free(made(session, 2 * LARGE));
        buffer = made(session, 4 * LARGE);
        assert_int_equal(fake_counts(session->fake).n_closes, 2);
        assert_int_equal(gpuq_buffer_new(session->client, LARGE, &buffer), GPUQ_E_QUOTA);
        assert_string_equal(gpuq_error_text(), "no more arenas for you");
        gpuq_buffer_free(buffer);
}

static void what_others_know_by_name_is_no_spare(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer = made(session, LARGE);
        gpuq_buffer_ref ref;

        assert_ok(gpuq_buffer_get_ref(buffer, &ref));
        gpuq_buffer_free(buffer);
        fake_await(session->fake, n_closes, 1);
}

static void buffer_of_an_unfinished_job_is_no_spare(void **state) {
        gpuq_config config = {.grid = {1}, .block = {1}};
        Session *session = *state;
        gpuq_buffer *from = made(session, LARGE), *to = made(session, LARGE), *next;
        gpuq_arg args[] = {gpuq_in(from), gpuq_out(to), gpuq_u64(1)};
        void *data = gpuq_buffer_data(from);
        gpuq_job *job;

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_job_new(session->client, &job));
        assert_ok(gpuq_job_launch(job, session->module, "twice", &config, args, 3));
        assert_ok(gpuq_submit(job));
        gpuq_buffer_free(from);
        next = made(session, LARGE);
        assert_ptr_not_equal(gpuq_buffer_data(next), data);

        fake_await(session->fake, n_jobs, 1);
        fake_complete(session->fake);
        assert_ok(gpuq_wait(job, -1));
        gpuq_buffer_free(next);
        gpuq_buffer_free(to);
        gpuq_job_free(job);
        assert_int_equal(n_arenas(session), 3);
        assert_int_equal(fake_counts(session->fake).n_closes, 0);
}

static void spares_go_with_their_client(void **state) {
        Session *session = *state;
        gpuq_buffer *last = made(session, LARGE);

        gpuq_buffer_free(made(session, 2 * LARGE));
        gpuq_client_free(TAKE_PTR(session->client));
        gpuq_buffer_free(last);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(freed_large_buffer_serves_the_next),
                session_test(spare_that_would_be_half_empty_is_left),
                session_test(small_and_device_buffers_leave_spares_alone),
                session_test(spares_are_bounded_in_bytes),
                session_test(spares_are_bounded_in_number),
                session_test(spare_of_no_use_for_long_is_closed),
                session_test(spares_go_before_a_quota_is_told),
                session_test(what_others_know_by_name_is_no_spare),
                session_test(buffer_of_an_unfinished_job_is_no_spare),
                session_test(spares_go_with_their_client),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
