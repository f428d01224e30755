/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submit scan against protobuf-c: what one returns the other would have returned.
 */
#include "scan_lists.h"

#include "submit_scan.h"

typedef struct Message {
        Gpuq__V1__Request request;
        Gpuq__V1__Submit submit;
        Gpuq__V1__Job jobs[N_LISTED], *job_list[N_LISTED];
        ScanLists lists;
} Message;

static void message_fill_job(Message *message, Gpuq__V1__Job *job) {
        gpuq__v1__job__init(job);
        job->tag = (uint32_t)random_number();
        job->buffers = message->lists.buffer_list;
        job->n_buffers = random_next() % N_LISTED;
        job->kernels = message->lists.kernel_list;
        job->n_kernels = random_next() % N_LISTED;
        job->operations.data = message->lists.operations;
        job->operations.len = random_next() % sizeof(message->lists.operations);
        job->after = message->lists.after;
        job->n_after = random_next() % 4 ? 0 : random_next() % N_LISTED;
        job->priority = (int32_t)random_number();
        job->timeout_ms = (uint32_t)random_number();
        job->label = random_next() % 2 ? "a label" : "";
        job->device = (uint32_t)random_number();
        job->repeatable = random_next() % 2;
        job->timed = random_next() % 2;
        job->word_arena = random_number();
        job->word_offset = random_number();
}

static size_t message_pack_request(Message *message, uint8_t **ret_data) {
        *ret_data = malloc(gpuq__v1__request__get_packed_size(&message->request) + 1);
        assert_non_null(*ret_data);
        return gpuq__v1__request__pack(&message->request, *ret_data);
}

static size_t message_pack_fires(uint8_t **ret_data) {
        Gpuq__V1__Fires fires = GPUQ__V1__FIRES__INIT;
        Gpuq__V1__Fire fire[N_LISTED], *list[N_LISTED];
        uint64_t slices[2 * N_LISTED];
        uint32_t patches[2 * N_LISTED];
        uint8_t values[N_LISTED] = {7};
        Message message;

        for (size_t i = 0; i < 2 * N_LISTED; i++) {
                slices[i] = random_number();
                patches[i] = (uint32_t)random_number();
        }
        for (size_t i = 0; i < N_LISTED; i++) {
                list[i] = &fire[i];
                gpuq__v1__fire__init(&fire[i]);
                fire[i].prepared = (uint32_t)random_number();
                fire[i].tag = (uint32_t)random_number();
                fire[i].slices = slices;
                fire[i].n_slices = random_next() % (2 * N_LISTED);
                fire[i].patches = patches;
                fire[i].n_patches = random_next() % (2 * N_LISTED);
                fire[i].values = (ProtobufCBinaryData){random_next() % N_LISTED, values};
                fire[i].word_arena = random_number();
                fire[i].word_offset = random_number();
        }
        fires.fires = list;
        fires.n_fires = random_next() % N_LISTED;
        fires.seen = random_next() % 4 ? (uint32_t)random_next() : 0;
        gpuq__v1__request__init(&message.request);
        message.request.serial = (uint32_t)random_number();
        message.request.body_case = GPUQ__V1__REQUEST__BODY_FIRES;
        message.request.fires = &fires;
        return message_pack_request(&message, ret_data);
}

static size_t message_pack_submit(uint8_t **ret_data) {
        Message message;

        scan_lists_fill(&message.lists);
        gpuq__v1__submit__init(&message.submit);
        message.submit.jobs = message.job_list;
        message.submit.n_jobs = random_next() % N_LISTED;
        message.submit.seen = random_next() % 4 ? (uint32_t)random_next() : 0;
        for (size_t i = 0; i < N_LISTED; i++) {
                message.job_list[i] = &message.jobs[i];
                message_fill_job(&message, &message.jobs[i]);
        }
        gpuq__v1__request__init(&message.request);
        message.request.serial = (uint32_t)random_number();
        message.request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        message.request.submit = &message.submit;
        return message_pack_request(&message, ret_data);
}

static size_t message_pack(uint8_t **ret_data) {
        return random_next() % 2 ? message_pack_submit(ret_data) : message_pack_fires(ret_data);
}

static bool compare(Bump *bump, const uint8_t *data, size_t n_data) {
        return scan_compare(bump, (ProtobufCMessage *)submit_scan(bump, data, n_data), data,
                            n_data);
}

static void what_a_library_packs_is_taken_but_for_dependencies(void **state) {
        assert_in_range(scan_whole(message_pack, compare), 200, 1900);
}

static void what_was_seen_comes_behind_the_jobs(void **state) {
        static const uint8_t request[] = {1 << 3, 5, 8 << 3 | 2, 7,    1 << 3 | 2, 2,
                                          1 << 3, 9, 2 << 3,     0xac, 0x02};
        Gpuq__V1__Request *scanned;
        Bump *bump;

        assert_int_equal(bump_new(&bump), 0);
        scanned = submit_scan(bump, request, sizeof(request));
        assert_non_null(scanned);
        assert_int_equal(scanned->submit->jobs[0]->tag, 9);
        assert_int_equal(scanned->submit->seen, 300);
        bump_free(bump);
}

static void broken_bytes_are_never_read_another_way(void **state) {
        assert_true(scan_broken(message_pack, compare) > 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_a_library_packs_is_taken_but_for_dependencies),
                cmocka_unit_test(what_was_seen_comes_behind_the_jobs),
                cmocka_unit_test(broken_bytes_are_never_read_another_way),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
