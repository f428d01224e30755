/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of jobs are read as protobuf-c reads them, or not at all. */
#include "tests/unit/supervisor/scan.h"

#include "client/lib/session/completions_scan.h"
#include "proto/pack.h"

#define N_COMPLETIONS 5u

static size_t message_pack_reply(Gpuq__V1__Completions *completions, uint8_t **ret_data) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;

        reply.serial = random_next() % 8 ? 0 : (uint32_t)random_number();
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = completions;
        *ret_data = malloc(gpuq__v1__reply__get_packed_size(&reply) + 1);
        assert_non_null(*ret_data);
        return gpuq__v1__reply__pack(&reply, *ret_data);
}

static size_t message_pack(uint8_t **ret_data) {
        Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
        Gpuq__V1__Completion completion[N_COMPLETIONS], *list[N_COMPLETIONS];
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;

        error.code = GPUQ__V1__CODE__E_FAULT;
        error.text = "it faulted";
        for (size_t i = 0; i < N_COMPLETIONS; i++) {
                list[i] = &completion[i];
                gpuq__v1__completion__init(&completion[i]);
                completion[i].id = random_number();
                completion[i].state = (Gpuq__V1__State)(random_next() % 6);
                completion[i].error = random_next() % 8 ? NULL : &error;
                completion[i].output = random_next() % 8 ? "" : "printed";
                completion[i].waited_us = random_number();
                completion[i].ran_us = random_number();
                completion[i].gpu_ns = random_number();
                completion[i].device = (uint32_t)random_number();
        }
        completions.completions = list;
        completions.n_completions = random_next() % (N_COMPLETIONS + 1);
        return message_pack_reply(&completions, ret_data);
}

static bool compare(Bump *bump, const uint8_t *data, size_t n_data) {
        return scan_compare(bump, (ProtobufCMessage *)completions_scan(bump, data, n_data), data,
                            n_data);
}

static void ends_that_are_numbers_alone_are_taken(void **state) {
        assert_in_range(scan_whole(message_pack, compare), 400, 1600);
}

/* As the daemon packs them: the length of the list has more bytes than it needs. */
static void daemons_own_are_taken(void **state) {
        uint8_t data[256], *list = pack_begin(data, GPUQ__V1__REPLY__BODY_COMPLETIONS);
        uint8_t *one = pack_open(list, 1), *end;
        Gpuq__V1__Reply *reply;
        Bump *bump;

        end = pack_number(one, 1, (uint64_t)7 << 32 | 9);
        end = pack_number(end, 2, GPUQ__V1__STATE__DONE);
        end = pack_number(end, 5, 300);
        end = pack_number(end, 8, 3);
        end = pack_close(one, end);
        pack_end(list, end);

        assert_int_equal(bump_new(&bump), 0);
        reply = completions_scan(bump, data, (size_t)(end - data));
        assert_non_null(reply);
        assert_int_equal(reply->serial, 0);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_COMPLETIONS);
        assert_int_equal(reply->completions->n_completions, 1);
        assert_int_equal(reply->completions->completions[0]->id, (uint64_t)7 << 32 | 9);
        assert_int_equal(reply->completions->completions[0]->waited_us, 300);
        assert_int_equal(reply->completions->completions[0]->device, 3);
        assert_true(compare(bump, data, (size_t)(end - data)));
        bump_free(bump);
}

static void broken_ends_are_never_read_another_way(void **state) {
        assert_true(scan_broken(message_pack, compare) > 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ends_that_are_numbers_alone_are_taken),
                cmocka_unit_test(daemons_own_are_taken),
                cmocka_unit_test(broken_ends_are_never_read_another_way),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
