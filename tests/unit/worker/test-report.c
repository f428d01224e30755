/* SPDX-License-Identifier: Apache-2.0 */
/* The ends that a worker tells: each job's, in their order. */
#include "tests/unit/supervisor/scan.h"

#include <string.h>
#include <unistd.h>

#include "worker/report.h"

#define N_JOBS 300u

typedef struct Place {
        Channel *ours, *theirs;
        Outbox outbox;
        Job jobs[N_JOBS];
        struct JobList ended;
        size_t n_read; /* ends of jobs */
} Place;

static void place_open(Place *place) {
        int fds[CHANNEL_N_FDS];

        *place = (Place){0};
        TAILQ_INIT(&place->ended);
        assert_int_equal(channel_new(&place->theirs, fds), 0);
        assert_int_equal(channel_adopt(fds, &place->ours), 0);
        outbox_init(&place->outbox, place->ours);
}

static void place_close(Place *place) {
        Job *job;

        TAILQ_FOREACH (job, &place->ended, link)
                failure_clear(&job->failure);
        assert_true(outbox_is_empty(&place->outbox));
        channel_free(place->ours);
        channel_free(place->theirs);
}

static void place_fill(Place *place, size_t n_jobs, unsigned one_in) {
        static char printed[] = "printed";

        for (size_t i = 0; i < n_jobs; ++i) {
                Job *job = &place->jobs[i];

                job->id = random_number();
                job->run.gpu_ns = random_number();
                job->run.ran_us = random_number() >> 16; /* as many bits as it has in a message */
                if (one_in && random_next() % one_in == 0)
                        job->output = printed;
                if (one_in && random_next() % one_in == 0)
                        failure_set(&job->failure, GPUQ__V1__CODE__E_LAUNCH, "job %zu", i);
                TAILQ_INSERT_TAIL(&place->ended, job, link);
        }
}

static void assert_end(const WorkerEnd *end, const WorkerMessage *told, const Job *job) {
        assert_int_equal(end->id, job->id);
        assert_int_equal(end->gpu_ns, job->run.gpu_ns);
        assert_int_equal(end->ran_us, job->run.ran_us);
        assert_string_equal(told->more, job->output ? job->output : "");
        assert_int_equal(told->head.code, job->failure.code);
        assert_string_equal(told->text, job->failure.text ? job->failure.text : "");
}

/* Return: how many messages there were. @n_jobs: told in turns, one after the other. */
static unsigned place_read(Place *place, size_t n_jobs) {
        const uint8_t *data;
        size_t n_data;
        unsigned n = 0;

        for (; channel_receive(place->theirs, &data, &n_data) == 0; ++n) {
                WorkerMessage told;
                const WorkerEnd *ends;

                assert_true(protocol_read(data, n_data, &told));
                assert_int_equal(told.head.kind, FROM_WORKER_ENDS);
                assert_true(told.head.n_items > 0);
                ends = told.items;
                for (size_t i = 0; i < told.head.n_items; ++i)
                        assert_end(&ends[i], &told, &place->jobs[place->n_read++ % n_jobs]);
        }
        return n;
}

static void ends_are_told_in_few_messages(void **state) {
        static Place place;

        place_open(&place);
        place_fill(&place, N_JOBS, 0);
        assert_int_equal(report_ends(&place.outbox, &place.ended), 0);
        assert_in_range(place_read(&place, N_JOBS), 1, 8);
        assert_int_equal(place.n_read, N_JOBS);
        place_close(&place);
}

static void ends_with_texts_keep_their_place(void **state) {
        static Place place;

        for (unsigned one_in = 1; one_in < 30; ++one_in) {
                size_t n_jobs = 1 + random_next() % N_JOBS;

                place_open(&place);
                place_fill(&place, n_jobs, one_in);
                assert_int_equal(report_ends(&place.outbox, &place.ended), 0);
                place_read(&place, n_jobs);
                assert_int_equal(place.n_read, n_jobs);
                place_close(&place);
        }
}

static void ends_wait_for_room_in_their_order(void **state) {
        static Place place;
        size_t n_told = 0;

        place_open(&place);
        place_fill(&place, N_JOBS, 20);
        for (unsigned n_more = 0; n_more < 5; n_more += !outbox_is_empty(&place.outbox)) {
                assert_int_equal(report_ends(&place.outbox, &place.ended), 0);
                n_told += N_JOBS;
        }
        while (place.n_read < n_told) {
                place_read(&place, N_JOBS);
                assert_int_equal(outbox_flush(&place.outbox), 0);
        }
        assert_int_equal(place.n_read, n_told);
        place_close(&place);
}

static void what_waits_for_room_keeps_its_descriptor(void **state) {
        WorkerMessage made = {{.kind = FROM_WORKER_ARENA_MADE, .id = 5}}, message;
        static Place place;
        const uint8_t *data;
        size_t n_data;
        int fds[2], fd;

        place_open(&place);
        place_fill(&place, N_JOBS, 0);
        while (outbox_is_empty(&place.outbox))
                assert_int_equal(report_ends(&place.outbox, &place.ended), 0);
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(outbox_send(&place.outbox, &made, fds[0]), 0);
        close(fds[0]);

        while (channel_receive(place.theirs, &data, &n_data) == 0 &&
               protocol_read(data, n_data, &message) && message.head.kind == FROM_WORKER_ENDS)
                assert_int_equal(outbox_flush(&place.outbox), 0);
        assert_int_equal(message.head.id, 5);
        fd = channel_take_fd(place.theirs);
        assert_int_equal(write(fds[1], "x", 1), 1);
        assert_int_equal(read(fd, (char[1]){0}, 1), 1);
        close(fd);
        close(fds[1]);
        place_close(&place);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ends_are_told_in_few_messages),
                cmocka_unit_test(ends_with_texts_keep_their_place),
                cmocka_unit_test(ends_wait_for_room_in_their_order),
                cmocka_unit_test(what_waits_for_room_keeps_its_descriptor),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
