/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of very many parts: counted, and refused before they are unpacked.
 */
#include "fake.h"

#include <string.h>
#include <unistd.h>

#include "proto/count.h"

#define MANY (2u << 20)

static size_t count(const void *data, size_t n_data, size_t n_max) {
        return count_parts(&gpuq__v1__request__descriptor, data, n_data, n_max);
}

static void parts_at_all_depths_are_counted(void **state) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers[] = {&buffer, &buffer};
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT, *jobs[] = {&job, &job, &job};
        uint8_t packed[256];
        size_t n;

        buffer.length = 5;
        job.buffers = buffers;
        job.n_buffers = 2;
        job.label = "a label";
        submit.jobs = jobs;
        submit.n_jobs = 3;
        request.serial = 9;
        request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request.submit = &submit;
        n = gpuq__v1__request__pack(&request, packed);
        assert_int_equal(count(packed, n, 100), 1 + 3 * (1 + 2 + 1));
        assert_int_equal(count(packed, n, 4), 5); /* and no further */
}

static void unknown_and_broken_fields(void **state) {
        static const uint8_t unknown[] = {0xf8, 0x3f, 1, 0xfa, 0x3f, 1, 7}, broken[] = {0x3a, 9, 1};

        assert_int_equal(count(unknown, sizeof(unknown), 100), 2);
        assert_int_equal(count(broken, sizeof(broken), 100), 0);
        assert_int_equal(count(NULL, 0, 100), 0);
}

/* Request { submit { jobs { buffers {} buffers {} ... } } } */
static uint8_t *pack_empty_buffers(size_t n, size_t *ret_n_data) {
        uint8_t *data = calloc(1, 2 * n + 64), *p = data + 32, *end = p + 2 * n;

        assert_non_null(data);
        for (size_t i = 0; i < n; ++i)
                memcpy(p + 2 * i, (uint8_t[]){0x12, 0}, 2);
        for (unsigned depth = 0; depth < 2; ++depth) {
                uint32_t length = (uint32_t)(end - p);
                uint8_t head[5] = {depth ? GPUQ__V1__REQUEST__BODY_SUBMIT << 3 | 2 : 0x0a};

                for (unsigned i = 1; i <= 4; ++i, length >>= 7)
                        head[i] = (uint8_t)((length & 0x7f) | (i < 4 ? 0x80 : 0));
                p -= sizeof(head);
                memcpy(p, head, sizeof(head));
        }
        *ret_n_data = (size_t)(end - p);
        memmove(data, p, *ret_n_data);
        return data;
}

static void a_client_with_millions_of_parts_is_sent_away(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint8_t head[WIRE_HEADER_BYTES] = {}, *data;
        size_t n_data, sent = 0;
        ssize_t n = 0;

        data = pack_empty_buffers(MANY - 64, &n_data);
        assert_int_equal(count(data, n_data, LIMIT_MESSAGE_PARTS), LIMIT_MESSAGE_PARTS + 1);
        assert_true(n_data <= WIRE_FRAME_MAX);
        memcpy(head, &(uint32_t){(uint32_t)n_data}, 4);
        assert_int_equal(write(wire_fd(client->wire), head, sizeof(head)), sizeof(head));
        while (sent < n_data) {
                n = write(wire_fd(client->wire), data + sent, n_data - sent);
                sent += n > 0 ? (size_t)n : 0;
                fake_turn(fake);
        }
        fake_expect_error(client, GPUQ__V1__CODE__E_PROTOCOL, "too many parts");
        free(data);
        fake_client_close(client);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_at_all_depths_are_counted),
                cmocka_unit_test(unknown_and_broken_fields),
                cmocka_unit_test(a_client_with_millions_of_parts_is_sent_away),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
