/* SPDX-License-Identifier: Apache-2.0 */

#include "support.h"

static gpuq_buffer *made(Session *session, size_t size) {
        gpuq_buffer *buffer = NULL;

        assert_ok(gpuq_buffer_new(session->client, size, &buffer));
        assert_int_equal(gpuq_buffer_size(buffer), size);
        return buffer;
}

static gpuq_buffer_ref ref_of(gpuq_buffer *buffer) {
        gpuq_buffer_ref ref;

        assert_ok(gpuq_buffer_get_ref(buffer, &ref));
        return ref;
}

static bool all_zero(gpuq_buffer *buffer) {
        const uint8_t *data = gpuq_buffer_data(buffer);

        for (size_t i = 0; i < gpuq_buffer_size(buffer); i++)
                if (data[i] != 0)
                        return false;

        return true;
}

static void small_buffers_share_an_arena(void **state) {
        Session *session = *state;
        gpuq_buffer *buffers[100];

        for (unsigned i = 0; i < 100; i++) {
                buffers[i] = made(session, 1000 + i);
                assert_int_equal((uintptr_t)gpuq_buffer_data(buffers[i]) % 256, 0);
                memset(gpuq_buffer_data(buffers[i]), (int)i, 1000 + i);
        }
        for (unsigned i = 0; i < 100; i++) {
                assert_int_equal(*(uint8_t *)gpuq_buffer_data(buffers[i]), i);
                gpuq_buffer_free(buffers[i]);
        }
        assert_int_equal(fake_counts(session->fake).n_arenas, 1);
        assert_int_equal(fake_counts(session->fake).last_arena_size, 1 << 20);
}

static void each_further_arena_is_twice_as_large(void **state) {
        Session *session = *state;
        gpuq_buffer *buffers[8];

        for (unsigned i = 0; i < 8; i++)
                buffers[i] = made(session, 600 << 10);
        /* 1 MiB holds one, 2 MiB three, 4 MiB six: the last four are in the third. */
        assert_int_equal(fake_counts(session->fake).n_arenas, 3);
        assert_int_equal(fake_counts(session->fake).last_arena_size, 4 << 20);
        for (unsigned i = 0; i < 8; i++)
                gpuq_buffer_free(buffers[i]);

        /* One empty arena is kept, and serves the next buffer. */
        fake_await(session->fake, n_closes, 2);
        gpuq_buffer_free(made(session, 1000));
        assert_int_equal(fake_counts(session->fake).n_arenas, 3);
}

static void largest_shared_arena_is_kept_for_the_next_buffers(void **state) {
        Session *session = *state;
        gpuq_buffer *buffers[6];

        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < 6; i++)
                        buffers[i] = made(session, 600 << 10);
                assert_int_equal(fake_counts(session->fake).n_arenas, 3);
                for (unsigned i = 0; i < 6; i++)
                        gpuq_buffer_free(buffers[i]);
        }
        fake_await(session->fake, n_closes, 2);
}

static void large_buffer_has_an_arena_of_its_own(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer = made(session, (1 << 20) + 1);

        assert_int_equal(fake_counts(session->fake).last_arena_size, (1 << 20) + 4096);
        gpuq_buffer_free(buffer);
}

static void freed_memory_reads_as_zero_again(void **state) {
        Session *session = *state;
        gpuq_buffer *a = made(session, 1000), *b;
        void *data = gpuq_buffer_data(a);

        memset(data, 0xff, 1000);
        gpuq_buffer_free(a);
        b = made(session, 5000);
        assert_ptr_equal(gpuq_buffer_data(b), data);
        assert_true(all_zero(b));
        gpuq_buffer_free(b);
}

static void uninitialized_memory_is_handed_out_as_it_is_and_zeroed_for_the_next(void **state) {
        Session *session = *state;
        gpuq_buffer *a = made(session, 1000), *b = NULL;
        uint8_t *data = gpuq_buffer_data(a);

        memset(data, 0xff, 1000);
        gpuq_buffer_free(a);
        assert_ok(gpuq_buffer_new_uninitialized(session->client, 900, &b));
        assert_ptr_equal(gpuq_buffer_data(b), data);
        assert_int_equal(data[899], 0xff);
        gpuq_buffer_free(b);

        b = made(session, 1000);
        assert_ptr_equal(gpuq_buffer_data(b), data);
        assert_true(all_zero(b));
        gpuq_buffer_free(b);
}

static void buffer_of_an_unfinished_job_is_not_handed_out(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to, *next;
        gpuq_job *job;
        void *data;

        fake_set(session->fake, (FakeManners){.hold = true});
        job = session_job(session, 21, &from, &to);
        data = gpuq_buffer_data(from);
        assert_ok(gpuq_submit(job));
        gpuq_buffer_free(from);
        next = made(session, 8);
        assert_ptr_not_equal(gpuq_buffer_data(next), data);
        gpuq_buffer_free(next);

        fake_await(session->fake, n_jobs, 1);
        fake_complete(session->fake);
        assert_ok(gpuq_wait(job, -1));
        assert_int_equal(buffer_word(to), 42);
        gpuq_buffer_free(to);
        gpuq_job_free(job);
        next = made(session, 512);
        assert_ptr_equal(gpuq_buffer_data(next), data);
        gpuq_buffer_free(next);
}

static void slice_keeps_the_whole_alive(void **state) {
        Session *session = *state;
        gpuq_buffer *whole = made(session, 1000), *slice, *part, *next;

        strcpy((char *)gpuq_buffer_data(whole) + 500, "still here");
        assert_ok(gpuq_buffer_slice(whole, 400, 600, &slice));
        assert_ok(gpuq_buffer_slice(slice, 100, 11, &part));
        gpuq_buffer_free(whole);
        gpuq_buffer_free(slice);
        next = made(session, 1000);
        assert_string_equal(gpuq_buffer_data(part), "still here");
        gpuq_buffer_free(next);
        gpuq_buffer_free(part);
}

static void slice_out_of_range_is_refused(void **state) {
        Session *session = *state;
        gpuq_buffer *whole = made(session, 1000), *slice;

        assert_int_equal(gpuq_buffer_slice(whole, 0, 1001, &slice), GPUQ_E_INVALID);
        assert_int_equal(gpuq_buffer_slice(whole, 1001, 1, &slice), GPUQ_E_INVALID);
        assert_int_equal(gpuq_buffer_slice(whole, 1, SIZE_MAX, &slice), GPUQ_E_INVALID);
        assert_int_equal(gpuq_buffer_slice(whole, 0, 0, &slice), GPUQ_E_INVALID);
        assert_text("1000 bytes");
        gpuq_buffer_free(whole);
        assert_int_equal(gpuq_buffer_new(session->client, 0, &whole), GPUQ_E_INVALID);
}

static void another_session_opens_it_by_name(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer = made(session, 1000), *there, *again;
        gpuq_buffer_ref ref;
        gpuq_client *other;

        gpuq_buffer_free(made(session, 100));
        strcpy(gpuq_buffer_data(buffer), "hello");
        ref = ref_of(buffer);
        assert_ok(gpuq_connect(fake_path(session->fake), &other));
        assert_ok(gpuq_buffer_open(other, &ref, &there));
        assert_ok(gpuq_buffer_open(other, &ref, &again));
        assert_string_equal(gpuq_buffer_data(there), "hello");
        assert_ptr_equal(gpuq_buffer_data(there), gpuq_buffer_data(again));
        assert_int_equal(fake_counts(session->fake).n_opens, 1);

        gpuq_buffer_free(there);
        gpuq_buffer_free(again);
        fake_await(session->fake, n_closes, 1);
        gpuq_client_free(other);
        gpuq_buffer_free(buffer);
}

static void what_others_know_by_name_is_not_reused(void **state) {
        Session *session = *state;
        gpuq_buffer *keep = made(session, 100), *buffer = made(session, 1000), *next;
        void *data = gpuq_buffer_data(buffer);

        ref_of(buffer);
        gpuq_buffer_free(buffer);
        next = made(session, 1000);
        assert_ptr_not_equal(gpuq_buffer_data(next), data);
        gpuq_buffer_free(next);
        gpuq_buffer_free(keep);
        fake_await(session->fake, n_closes, 1); /* nor is the arena kept */
}

static void name_out_of_range_is_refused(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer = made(session, 1000), *there;
        gpuq_buffer_ref ref = ref_of(buffer);

        ref.length = 2 << 20;
        assert_int_equal(gpuq_buffer_open(session->client, &ref, &there), GPUQ_E_INVALID);
        ref.arena = 99;
        assert_int_equal(gpuq_buffer_open(session->client, &ref, &there), GPUQ_E_NOT_FOUND);
        assert_string_equal(gpuq_error_text(), "no such arena");
        gpuq_buffer_free(buffer);
}

static void device_memory_has_no_pointer_and_is_not_reused(void **state) {
        Session *session = *state;
        gpuq_buffer *a, *b;
        gpuq_buffer_ref ref_a, ref_b;

        assert_ok(gpuq_buffer_new_device(session->client, 1000, 0, &a));
        assert_null(gpuq_buffer_data(a));
        assert_int_equal(gpuq_buffer_device(a), 0);
        ref_a = ref_of(a);
        assert_ok(gpuq_buffer_new_device(session->client, 1000, -1, &b));
        ref_b = ref_of(b);
        assert_int_equal(ref_a.arena, ref_b.arena);
        gpuq_buffer_free(a);
        assert_ok(gpuq_buffer_new_device(session->client, 1000, 0, &a));
        assert_true(ref_of(a).offset >= 2048);
        gpuq_buffer_free(a);
        gpuq_buffer_free(b);
        fake_await(session->fake, n_closes, 1);

        assert_ok(gpuq_buffer_new_device(session->client, 1000, -1, &a));
        assert_int_equal(gpuq_buffer_device(a), 1);
        gpuq_buffer_free(a);
}

static void refused_arena_is_told_and_harms_nothing(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer;

        fake_set(session->fake, (FakeManners){.arena_code = GPUQ__V1__CODE__E_QUOTA});
        assert_int_equal(gpuq_buffer_new(session->client, 1000, &buffer), GPUQ_E_QUOTA);
        assert_string_equal(gpuq_error_text(), "no arena for you");
        fake_set(session->fake, (FakeManners){0});
        gpuq_buffer_free(made(session, 1000));
}

static void buffers_outlive_their_client(void **state) {
        Session *session = *state;
        gpuq_buffer *buffer = made(session, 1000), *slice;

        gpuq_client_free(TAKE_PTR(session->client));
        strcpy(gpuq_buffer_data(buffer), "ours until freed");
        assert_int_equal(gpuq_buffer_slice(buffer, 0, 10, &slice), GPUQ_E_CLOSED);
        assert_text("closed");
        gpuq_buffer_free(buffer);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(small_buffers_share_an_arena),
                session_test(each_further_arena_is_twice_as_large),
                session_test(largest_shared_arena_is_kept_for_the_next_buffers),
                session_test(large_buffer_has_an_arena_of_its_own),
                session_test(freed_memory_reads_as_zero_again),
                session_test(uninitialized_memory_is_handed_out_as_it_is_and_zeroed_for_the_next),
                session_test(buffer_of_an_unfinished_job_is_not_handed_out),
                session_test(slice_keeps_the_whole_alive),
                session_test(slice_out_of_range_is_refused),
                session_test(another_session_opens_it_by_name),
                session_test(what_others_know_by_name_is_not_reused),
                session_test(name_out_of_range_is_refused),
                session_test(device_memory_has_no_pointer_and_is_not_reused),
                session_test(refused_arena_is_told_and_harms_nothing),
                session_test(buffers_outlive_their_client),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
