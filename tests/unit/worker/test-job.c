/* SPDX-License-Identifier: Apache-2.0 */
/* A job is what protobuf-c reads of its message, or is refused. */
#include "tests/unit/supervisor/scan_lists.h"

#include "same_job.h"

typedef struct Message {
        Gpuq__Worker__WorkerJob job;
        ScanLists lists;
} Message;

/* Slices of one arena often come one after the other. */
static void message_fill_lists(Message *message) {
        ScanLists *lists = &message->lists;

        scan_lists_fill(lists);
        for (size_t i = 1; i < N_LISTED; i++)
                if (random_next() % 2)
                        lists->buffers[i].arena = lists->buffers[i - 1].arena;
}

static void message_fill(Message *message) {
        Gpuq__Worker__WorkerJob *job = &message->job;

        message_fill_lists(message);
        gpuq__worker__worker_job__init(job);
        job->id = random_number();
        job->priority = (int32_t)random_number();
        job->buffers = message->lists.buffer_list;
        job->n_buffers = random_next() % (N_LISTED + 1);
        job->kernels = message->lists.kernel_list;
        job->n_kernels = random_next() % (N_LISTED + 1);
        job->operations.data = message->lists.operations;
        job->operations.len = random_next() % sizeof(message->lists.operations);
        job->after = message->lists.after;
        job->n_after = random_next() % (N_LISTED + 1);
        job->timed = random_next() % 2;
        job->timeout_ms = (uint32_t)random_number();
        job->word_arena = random_number();
        job->word_offset = random_number() & ~UINT64_C(3);
        job->alone = random_next() % 2;
}

static size_t message_pack(uint8_t **ret_data) {
        Message message;

        message_fill(&message);
        *ret_data = malloc(gpuq__worker__worker_job__get_packed_size(&message.job) + 1);
        assert_non_null(*ret_data);
        return gpuq__worker__worker_job__pack(&message.job, *ret_data);
}

/* Return: whether it was read. */
static bool compare(const uint8_t *data, size_t n_data) {
        Gpuq__Worker__WorkerJob *message;
        static SameJob same;
        Job *job = NULL;
        int r = same_job_new(&same, data, n_data, &job);

        if (r == 0) {
                message = gpuq__worker__worker_job__unpack(NULL, n_data, data);
                assert_non_null(message);
                assert_true(same_job_is(job, message));
                gpuq__worker__worker_job__free_unpacked(message, NULL);
        } else {
                assert_int_equal(r, -EBADMSG);
        }
        assert_true(same_job_end(&same, job));
        return r == 0;
}

static void what_is_packed_is_read(void **state) {
        for (unsigned i = 0; i < 2000; i++) {
                uint8_t *data;
                size_t n_data = message_pack(&data);

                assert_true(compare(data, n_data));
                free(data);
        }
}

static void word_is_that_of_its_message(void **state) {
        Message message;
        static SameJob same;
        uint8_t data[1024];
        Job *job;

        message_fill(&message);
        message.job.word_arena = 9;
        message.job.word_offset = 400;
        assert_int_equal(
                same_job_new(&same, data, gpuq__worker__worker_job__pack(&message.job, data), &job),
                0);
        assert_non_null(job->word.arena);
        assert_int_equal(job->word.arena->id, 9);
        assert_int_equal(job->word.offset, 400);
        assert_true(same_job_end(&same, job));
}

static void what_is_cut_short_is_read_as_it_stands_or_refused(void **state) {
        unsigned n_read = 0, n_refused = 0;

        for (unsigned i = 0; i < 200; i++) {
                uint8_t *data;
                size_t n_data = message_pack(&data);

                for (size_t n = 0; n < n_data; n++) {
                        uint8_t *exact = malloc(n + 1);

                        memcpy(exact + 1, data, n);
                        if (compare(exact + 1, n))
                                n_read++;
                        else
                                n_refused++;
                        free(exact);
                }
                free(data);
        }
        assert_true(n_read > 1000);
        assert_true(n_refused > n_read);
}

static void broken_bytes_are_never_read_another_way(void **state) {
        unsigned n_read = 0;

        for (unsigned i = 0; i < 4000; i++) {
                uint8_t *data;
                size_t n_data = message_pack(&data);

                for (unsigned k = 0; k < 10 && n_data; k++) {
                        data[random_next() % n_data] = (uint8_t)random_next();
                        n_read += compare(data, n_data);
                }
                free(data);
        }
        assert_true(n_read > 1000);
}

static void unknown_fields_are_passed_over_and_known_ones_come_once(void **state) {
        static const uint8_t number[] = {12 << 3, 5}, text[] = {0xfa, 0x01, 2, 'h', 'i'},
                             again[] = {1 << 3, 5}, fixed[] = {12 << 3 | 5, 0, 0, 0, 0};
        uint8_t data[1024];
        Message message;
        size_t n;

        message_fill(&message);
        n = gpuq__worker__worker_job__pack(&message.job, data);
        memcpy(data + n, number, sizeof(number));
        memcpy(data + n + sizeof(number), text, sizeof(text));
        assert_true(compare(data, n + sizeof(number) + sizeof(text)));

        memcpy(data + n, again, sizeof(again));
        assert_false(compare(data, n + sizeof(again)));
        memcpy(data + n, fixed, sizeof(fixed));
        assert_false(compare(data, n + sizeof(fixed)));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_packed_is_read),
                cmocka_unit_test(word_is_that_of_its_message),
                cmocka_unit_test(what_is_cut_short_is_read_as_it_stands_or_refused),
                cmocka_unit_test(broken_bytes_are_never_read_another_way),
                cmocka_unit_test(unknown_fields_are_passed_over_and_known_ones_come_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
