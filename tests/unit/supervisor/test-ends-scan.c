/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of jobs are read as protobuf-c reads them, or not at all. */
#include "scan.h"

#include "ends_scan.h"

#define N_ENDS 5u

static size_t message_pack(uint8_t **ret_data) {
        Gpuq__Worker__FromWorker message = GPUQ__WORKER__FROM_WORKER__INIT;
        Gpuq__Worker__JobEnds ends = GPUQ__WORKER__JOB_ENDS__INIT;
        Gpuq__Worker__JobEnd end[N_ENDS], *list[N_ENDS];
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;

        error.code = GPUQ__V1__CODE__E_FAULT;
        for (size_t i = 0; i < N_ENDS; i++) {
                list[i] = &end[i];
                gpuq__worker__job_end__init(&end[i]);
                end[i].id = random_number();
                end[i].error = random_next() % 8 ? NULL : &error;
                end[i].output = random_next() % 8 ? "" : "printed";
                end[i].gpu_ns = random_number();
                end[i].ran_us = random_number();
        }
        ends.ends = list;
        ends.n_ends = random_next() % (N_ENDS + 1);
        message.body_case = GPUQ__WORKER__FROM_WORKER__BODY_ENDS;
        message.ends = &ends;

        *ret_data = malloc(gpuq__worker__from_worker__get_packed_size(&message) + 1);
        assert_non_null(*ret_data);
        return gpuq__worker__from_worker__pack(&message, *ret_data);
}

static bool compare(Bump *bump, const uint8_t *data, size_t n_data) {
        return scan_compare(bump, (ProtobufCMessage *)ends_scan(bump, data, n_data), data, n_data);
}

static void ends_that_are_numbers_alone_are_taken(void **state) {
        assert_in_range(scan_whole(message_pack, compare), 500, 1800);
}

static void broken_ends_are_never_read_another_way(void **state) {
        assert_true(scan_broken(message_pack, compare) > 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ends_that_are_numbers_alone_are_taken),
                cmocka_unit_test(broken_ends_are_never_read_another_way),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
