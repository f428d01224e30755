/* SPDX-License-Identifier: Apache-2.0 */
/* What protobuf-c reads of the jobs that go to a worker. */
#include "scan.h"

#include <string.h>

#include "proto/worker.pb-c.h"
#include "arena.h"
#include "job.h"
#include "module.h"
#include "outbox.h"

#define N_BUFFERS 3u

typedef struct Place {
        Channel *ours, *theirs;
        Outbox outbox;
        Arena arenas[N_BUFFERS], word;
        Module module;
        Job before, job;
        JobBuffer buffers[N_BUFFERS];
        JobKernel kernel;
        JobEdge order;
        char name[2048];
        uint8_t operations[64];
} Place;

static void place_open(Place *place) {
        int fds[CHANNEL_N_FDS];

        *place = (Place){0};
        assert_int_equal(channel_new(&place->ours, fds), 0);
        assert_int_equal(channel_adopt(fds, &place->theirs), 0);
        outbox_init(&place->outbox);
}

static void place_close(Place *place) {
        outbox_clear(&place->outbox);
        channel_free(place->ours);
        channel_free(place->theirs);
}

static void place_fill(Place *place, size_t n_name) {
        Job *job = &place->job;

        memset(place->name, 'k', n_name);
        place->name[n_name] = '\0';
        memset(place->operations, 7, sizeof(place->operations));
        for (size_t i = 0; i < N_BUFFERS; ++i) {
                place->arenas[i].id = random_number();
                place->buffers[i] = (JobBuffer){
                        .arena = &place->arenas[i],
                        .offset = random_number(),
                        .length = random_number(),
                        .direction = (JobDirection)(random_next() % 3),
                };
        }
        place->module.id = random_number();
        place->kernel = (JobKernel){&place->module, place->name, n_name};
        place->before.id = random_number();
        place->order.before = &place->before;
        place->word.id = 1 + random_next() % 1000;

        *job = (Job){
                .id = random_number(),
                .buffers = place->buffers,
                .n_buffers = random_next() % (N_BUFFERS + 1),
                .kernels = &place->kernel,
                .n_kernels = 1,
                .operations = place->operations,
                .n_operations = random_next() % sizeof(place->operations),
                .order = &place->order,
                .n_order = random_next() % 2,
                .timed = random_next() % 2,
                .timeout_ms = (uint32_t)random_number(),
                .word = random_next() % 2 ? &place->word : NULL,
                .word_offset = random_number(),
                .is_alone = random_next() % 2,
        };
        job->entry.priority = (int)(random_next() % 5) - 2;
        job->item = (OutboxItem){.kind = OUTBOX_JOB, .job = job};
}

static void assert_job(const Gpuq__Worker__WorkerJob *message, const Job *job) {
        assert_int_equal(message->id, job->id);
        assert_int_equal(message->priority, job->entry.priority);
        assert_int_equal(message->n_buffers, job->n_buffers);
        for (size_t i = 0; i < job->n_buffers; ++i) {
                assert_int_equal(message->buffers[i]->arena, job->buffers[i].arena->id);
                assert_int_equal(message->buffers[i]->offset, job->buffers[i].offset);
                assert_int_equal(message->buffers[i]->length, job->buffers[i].length);
                assert_int_equal(message->buffers[i]->direction, job->buffers[i].direction);
        }
        assert_int_equal(message->n_kernels, 1);
        assert_int_equal(message->kernels[0]->module, job->kernels[0].module->id);
        assert_string_equal(message->kernels[0]->name, job->kernels[0].name);
        assert_int_equal(message->operations.len, job->n_operations);
        assert_memory_equal(message->operations.data, job->operations, job->n_operations);
        assert_int_equal(message->n_after, job->n_order);
        if (job->n_order)
                assert_int_equal(message->after[0], job->order[0].before->id);
        assert_int_equal(message->timed, job->timed);
        assert_int_equal(message->timeout_ms, job->timeout_ms);
        assert_int_equal(message->word_arena, job->word ? job->word->id : 0);
        assert_int_equal(message->word_offset, job->word ? job->word_offset : 0);
        assert_int_equal(message->alone, job->is_alone);
}

static void job_is_told_whole_however_long_its_names_are(void **state) {
        static Place place;
        Gpuq__Worker__ToWorker *message;
        const uint8_t *data;
        size_t n_data;

        place_open(&place);
        for (size_t n_name = 1; n_name < 1100; n_name += n_name < 200 ? 1 : 97) {
                place_fill(&place, n_name);
                outbox_push_job(&place.outbox, &place.job);
                assert_int_equal(outbox_flush(&place.outbox, place.ours), 0);
                assert_int_equal(channel_receive(place.theirs, &data, &n_data), 0);
                message = gpuq__worker__to_worker__unpack(NULL, n_data, data);
                assert_non_null(message);
                assert_int_equal(message->body_case, GPUQ__WORKER__TO_WORKER__BODY_JOBS);
                assert_int_equal(message->jobs->n_jobs, 1);
                assert_job(message->jobs->jobs[0], &place.job);
                gpuq__worker__to_worker__free_unpacked(message, NULL);
        }
        place_close(&place);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(job_is_told_whole_however_long_its_names_are),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
