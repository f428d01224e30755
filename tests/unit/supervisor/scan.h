/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_SCAN_H
#define GPUQ_TEST_SCAN_H

/*
 * A scan against protobuf-c: what one returns the other would have returned. Random numbers
 * are the same ones in every run.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <protobuf-c/protobuf-c.h>

#include "util/bump.h"

static inline uint64_t random_next(void) {
        static uint64_t state = 88172645463325252ull;

        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
}

/* Small, large or 0. */
static inline uint64_t random_number(void) {
        return random_next() >> random_next() % 64 & (random_next() % 3 ? UINT64_MAX : 0);
}

static inline void assert_same_message(const ProtobufCMessage *a, const ProtobufCMessage *b) {
        size_t n = protobuf_c_message_get_packed_size(a);
        uint8_t *data_a, *data_b;

        assert_int_equal(protobuf_c_message_get_packed_size(b), n);
        data_a = malloc(n + 1);
        data_b = malloc(n + 1);
        protobuf_c_message_pack(a, data_a);
        protobuf_c_message_pack(b, data_b);
        assert_memory_equal(data_a, data_b, n);
        free(data_a);
        free(data_b);
}

/** scan_compare() - @scanned: what a scan made of @data in @bump, which is empty then. Return: whether it took it. */
static inline bool scan_compare(Bump *bump, const ProtobufCMessage *scanned, const uint8_t *data,
                                size_t n_data) {
        ProtobufCMessage *unpacked;

        if (scanned) {
                unpacked = protobuf_c_message_unpack(scanned->descriptor, NULL, n_data, data);
                assert_non_null(unpacked);
                assert_same_message(scanned, unpacked);
                protobuf_c_message_free_unpacked(unpacked, NULL);
        }
        bump_reset(bump);
        return scanned != NULL;
}

#endif
