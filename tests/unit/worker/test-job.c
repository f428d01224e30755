/* SPDX-License-Identifier: Apache-2.0 */
/* A job is what its message says, or is refused: nothing behind the message is read. */
#include "tests/unit/supervisor/scan_lists.h"

#include "job_message.h"
#include "same_job.h"

#define N_NAME        32u
#define MESSAGE_BYTES 1024u

typedef struct Message {
        WorkerJob job;
        WorkerJobParts parts;
        WorkerBuffer buffers[N_LISTED];
        uint64_t modules[N_LISTED], after[N_LISTED];
        char names[N_LISTED * N_NAME];
        uint8_t operations[64];
} Message;

/* Slices of one arena often come one after the other. */
static void message_fill_buffers(Message *message) {
        for (uint32_t i = 0; i < message->job.n_buffers; i++) {
                message->buffers[i] = (WorkerBuffer){random_number(), random_number(),
                                                     random_number(), random_next() % 4};
                if (i && random_next() % 2)
                        message->buffers[i].arena = message->buffers[i - 1].arena;
        }
}

static void message_fill_names(Message *message) {
        for (uint32_t i = 0; i < message->job.n_kernels; i++) {
                size_t n_name = random_next() % N_NAME;

                message->modules[i] = random_number();
                memset(message->names + message->job.n_names, 'a' + (int)i, n_name);
                message->names[message->job.n_names + n_name] = '\0';
                message->job.n_names += (uint32_t)n_name + 1;
        }
}

static void message_fill(Message *message) {
        message->job = (WorkerJob){
                .priority = (int32_t)random_number(),
                .id = random_number(),
                .word_arena = random_number(),
                .word_offset = random_number() & ~UINT64_C(3),
                .timeout_ms = (uint32_t)random_number(),
                .n_buffers = (uint32_t)(random_next() % (N_LISTED + 1)),
                .n_kernels = (uint32_t)(random_next() % (N_LISTED + 1)),
                .n_after = (uint32_t)(random_next() % (N_LISTED + 1)),
                .n_operations = (uint32_t)(random_next() % sizeof(message->operations)),
                .timed = random_next() % 2,
                .alone = random_next() % 2,
        };
        message_fill_buffers(message);
        message_fill_names(message);
        for (uint32_t i = 0; i < message->job.n_after; i++)
                message->after[i] = random_number();
        memset(message->operations, 7, sizeof(message->operations));
        message->parts = (WorkerJobParts){message->buffers, message->modules, message->after,
                                          message->names, message->operations};
}

/* Exactly as long as it is. */
static uint8_t *message_write(Message *message, size_t *ret_n) {
        uint8_t *data;

        message_fill(message);
        *ret_n = job_message_bytes(&message->job);
        assert_true(*ret_n <= MESSAGE_BYTES);
        data = malloc(*ret_n);
        assert_non_null(data);
        assert_ptr_equal(job_message_write(data, message->job, &message->parts), data + *ret_n);
        return data;
}

/* Return: whether it was read. */
static bool try(const uint8_t *data, size_t n_data) {
        static SameJob same;
        WorkerJobParts parts;
        const WorkerJob *message;
        Job *job = same_job_new(&same, data, n_data, &message, &parts);

        if (job)
                assert_true(same_job_is(job, message, &parts));
        assert_true(same_job_end(&same, job));
        return job != NULL;
}

static void what_is_written_is_read(void **state) {
        static SameJob same;
        Message message;
        WorkerJobParts parts;
        const WorkerJob *read;

        for (unsigned i = 0; i < 2000; i++) {
                size_t n_data;
                uint8_t *data = message_write(&message, &n_data);
                Job *job = same_job_new(&same, data, n_data, &read, &parts);

                assert_non_null(job);
                assert_int_equal(read->n_bytes, n_data);
                assert_true(same_job_is(job, &message.job, &message.parts));
                assert_true(same_job_end(&same, job));
                free(data);
        }
}

static void job_of_a_list_ends_where_the_next_begins(void **state) {
        uint8_t data[3 * MESSAGE_BYTES] __attribute__((aligned(8))), *p = data;
        const WorkerJob *job;
        WorkerJobParts parts;
        Message message;
        size_t n_left;

        for (uint64_t id = 1; id <= 3; id++) {
                message_fill(&message);
                message.job.id = id;
                p = job_message_write(p, message.job, &message.parts);
        }
        n_left = (size_t)(p - data);
        p = data;
        for (uint64_t id = 1; id <= 3; id++) {
                job = protocol_job(p, n_left, &parts);
                assert_non_null(job);
                assert_int_equal(job->id, id);
                p += job->n_bytes;
                n_left -= job->n_bytes;
        }
        assert_int_equal(n_left, 0);
}

static void word_is_that_of_its_message(void **state) {
        uint8_t data[MESSAGE_BYTES] __attribute__((aligned(8)));
        static SameJob same;
        WorkerJobParts parts;
        const WorkerJob *read;
        Message message;
        Job *job;

        message_fill(&message);
        message.job.word_arena = 9;
        message.job.word_offset = 400;
        job_message_write(data, message.job, &message.parts);
        job = same_job_new(&same, data, sizeof(data), &read, &parts);
        assert_non_null(job);
        assert_non_null(job->word.arena);
        assert_int_equal(job->word.arena->id, 9);
        assert_int_equal(job->word.offset, 400);
        assert_true(same_job_end(&same, job));
}

static void what_is_cut_short_is_refused(void **state) {
        Message message;

        for (unsigned i = 0; i < 200; i++) {
                size_t n_data;
                uint8_t *data = message_write(&message, &n_data);

                for (size_t n = 0; n < n_data; n++) {
                        uint8_t *exact = malloc(n + !n);

                        memcpy(exact, data, n);
                        assert_false(try(exact, n));
                        free(exact);
                }
                free(data);
        }
}

/* Where a length is broken the job is refused; elsewhere it is another job. */
static void broken_bytes_are_refused_or_read_as_they_stand(void **state) {
        unsigned n_read = 0, n_refused = 0;
        Message message;

        for (unsigned i = 0; i < 4000; i++) {
                size_t n_data;
                uint8_t *data = message_write(&message, &n_data);

                for (unsigned k = 0; k < 10; k++) {
                        data[random_next() % n_data] = (uint8_t)random_next();
                        if (try(data, n_data))
                                n_read++;
                        else
                                n_refused++;
                }
                free(data);
        }
        assert_true(n_read > 1000);
        assert_true(n_refused > 1000);
}

static void names_without_their_ends_are_refused(void **state) {
        uint8_t data[MESSAGE_BYTES] __attribute__((aligned(8)));
        char names[] = "add\0scale";
        uint64_t modules[] = {1, 2};
        WorkerJobParts parts = {.modules = modules, .names = names};
        WorkerJob job = {.n_kernels = 2};

        for (uint32_t n_names = 0; n_names <= sizeof(names); n_names++) {
                job.n_names = n_names;
                job_message_write(data, job, &parts);
                assert_int_equal(try(data, sizeof(data)), n_names == sizeof(names));
        }
        job.n_kernels = 1; /* one name too many */
        job_message_write(data, job, &parts);
        assert_false(try(data, sizeof(data)));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(job_of_a_list_ends_where_the_next_begins),
                cmocka_unit_test(word_is_that_of_its_message),
                cmocka_unit_test(what_is_cut_short_is_refused),
                cmocka_unit_test(broken_bytes_are_refused_or_read_as_they_stand),
                cmocka_unit_test(names_without_their_ends_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
