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
#include <string.h>

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

/** ScanPack - a message of random fields. Return: bytes of @ret_data, which is the caller's. */
typedef size_t (*ScanPack)(uint8_t **ret_data);
/** ScanTake - scan_compare() with what the scan under test makes of @data. */
typedef bool (*ScanTake)(Bump *bump, const uint8_t *data, size_t n_data);

/** scan_whole() - messages as they are packed. Return: how many of 2000 were taken. */
static inline unsigned scan_whole(ScanPack pack, ScanTake take) {
        unsigned n_taken = 0;
        Bump *bump;

        assert_int_equal(bump_new(&bump), 0);
        for (unsigned i = 0; i < 2000; i++) {
                uint8_t *data;
                size_t n_data = pack(&data);

                n_taken += take(bump, data, n_data);
                free(data);
        }
        bump_free(bump);
        return n_taken;
}

/* With nothing behind them, not even what a sanitizer would take for them. */
static inline unsigned scan_cut(Bump *bump, ScanTake take, const uint8_t *data, size_t n_data) {
        unsigned n_taken = 0;

        for (size_t n = n_data > 40 ? n_data - 40 : 0; n < n_data; n++) {
                uint8_t *exact = malloc(n + 1);

                memcpy(exact + 1, data, n);
                n_taken += take(bump, exact + 1, n);
                free(exact);
        }
        return n_taken;
}

/** scan_broken() - messages with other bytes here and there, then cut short too. Return: how many were taken all the same. */
static inline unsigned scan_broken(ScanPack pack, ScanTake take) {
        unsigned n_taken = 0;
        Bump *bump;

        assert_int_equal(bump_new(&bump), 0);
        for (unsigned i = 0; i < 4000; i++) {
                uint8_t *data;
                size_t n_data = pack(&data);

                n_taken += scan_cut(bump, take, data, n_data);
                for (unsigned k = 0; k < 20 && n_data; k++) {
                        data[random_next() % n_data] = (uint8_t)random_next();
                        n_taken += take(bump, data, n_data);
                }
                n_taken += scan_cut(bump, take, data, n_data);
                free(data);
        }
        bump_free(bump);
        return n_taken;
}

#endif
