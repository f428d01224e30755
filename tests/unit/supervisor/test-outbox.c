/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker reads of the jobs that go to it. */
#include "scan.h"

#include <string.h>

#include "arena.h"
#include "job.h"
#include "module.h"
#include "outbox.h"
#include "worker/protocol.h"

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
        place->before.state = JOB_RUNNING;
        place->order.before = random_next() % 2 ? &place->before : NULL; /* it has ended */
        place->word.id = 1 + random_next() % 1000;

        *job = (Job){
                .id = random_number(),
                .work.buffers = place->buffers,
                .work.n_buffers = random_next() % (N_BUFFERS + 1),
                .work.kernels = &place->kernel,
                .work.n_kernels = 1,
                .work.operations = place->operations,
                .work.n_operations = random_next() % sizeof(place->operations),
                .edges.order = &place->order,
                .edges.n_order = random_next() % 2,
                .work.timed = random_next() % 2,
                .work.timeout_ms = (uint32_t)random_number(),
                .work.word = random_next() % 2 ? &place->word : NULL,
                .work.word_offset = random_number(),
                .is_alone = random_next() % 2,
        };
        job->entry.priority = (int)(random_next() % 5) - 2;
}

static void assert_job(const WorkerJob *message, const WorkerJobParts *parts, const Job *job) {
        assert_int_equal(message->id, job->id);
        assert_int_equal(message->priority, job->entry.priority);
        assert_int_equal(message->n_buffers, job->work.n_buffers);
        for (size_t i = 0; i < job->work.n_buffers; ++i) {
                assert_int_equal(parts->buffers[i].arena, job->work.buffers[i].arena->id);
                assert_int_equal(parts->buffers[i].offset, job->work.buffers[i].offset);
                assert_int_equal(parts->buffers[i].length, job->work.buffers[i].length);
                assert_int_equal(parts->buffers[i].direction, job->work.buffers[i].direction);
        }
        assert_int_equal(message->n_kernels, 1);
        assert_int_equal(parts->modules[0], job->work.kernels[0].module->id);
        assert_string_equal(parts->names, job->work.kernels[0].name);
        assert_int_equal(message->n_operations, job->work.n_operations);
        assert_memory_equal(parts->operations, job->work.operations, job->work.n_operations);
        assert_int_equal(message->n_after, job->edges.n_order && job->edges.order[0].before);
        if (message->n_after)
                assert_int_equal(parts->after[0], job->edges.order[0].before->id);
        assert_int_equal(message->timed, job->work.timed);
        assert_int_equal(message->timeout_ms, job->work.timeout_ms);
        assert_int_equal(message->word_arena, job->work.word ? job->work.word->id : 0);
        assert_int_equal(message->word_offset, job->work.word ? job->work.word_offset : 0);
        assert_int_equal(message->alone, job->is_alone);
}

static void job_is_told_whole_however_long_its_names_are(void **state) {
        static Place place;
        WorkerMessage message;
        WorkerJobParts parts;
        const WorkerJob *job;
        const uint8_t *data;
        size_t n_data;

        place_open(&place);
        for (size_t n_name = 1; n_name < 1100; n_name += n_name < 200 ? 1 : 97) {
                place_fill(&place, n_name);
                outbox_push_job(&place.outbox, &place.job);
                assert_int_equal(outbox_flush(&place.outbox, place.ours), 0);
                assert_int_equal(channel_receive(place.theirs, &data, &n_data), 0);
                assert_true(protocol_read(data, n_data, &message));
                assert_int_equal(message.head.kind, TO_WORKER_JOBS);
                job = protocol_job(message.items, message.head.n_items, &parts);
                assert_non_null(job);
                assert_int_equal(job->n_bytes, message.head.n_items);
                assert_job(job, &parts, &place.job);
        }
        place_close(&place);
}

static void module_is_told_with_its_name_and_texts(void **state) {
        char *options[] = {"-O3", "", "--use_fast_math"}, *names[] = {"f<int>", "o"};
        static const char words[] = "h0\0o-O3\0o\0o--use_fast_math\0kf<int>\0ko";
        static Place place;
        WorkerMessage message;
        const uint8_t *data;
        size_t n_data;

        place_open(&place);
        place.module = (Module){
                .id = 77,
                .n_refs = 2,
                .format = GPUQ__V1__FORMAT__SOURCE,
                .length = 99,
                .name = "a.cu",
                .texts = {.options = options, .n_options = 3, .names = names, .n_names = 2},
        };
        assert_int_equal(outbox_push_module(&place.outbox, &place.module), 0);
        assert_int_equal(outbox_flush(&place.outbox, place.ours), 0);
        assert_int_equal(channel_receive(place.theirs, &data, &n_data), 0);
        assert_true(protocol_read(data, n_data, &message));
        assert_int_equal(message.head.kind, TO_WORKER_MODULE_ADD);
        assert_int_equal(message.head.id, 77);
        assert_int_equal(message.head.number, 99);
        assert_int_equal(message.head.detail, GPUQ__V1__FORMAT__SOURCE);
        assert_string_equal(message.text, "a.cu");
        assert_int_equal(message.head.n_items, sizeof(words));
        assert_memory_equal(message.items, words, sizeof(words));
        place_close(&place);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(job_is_told_whole_however_long_its_names_are),
                cmocka_unit_test(module_is_told_with_its_name_and_texts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
