/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "util/macro.h"
#include "util/table.h"

#define N_KEYS    1000u
#define N_BUCKETS 1024u
/* By chance, 1,000 keys in 1,024 buckets, about 1 bucket in 10^15 has more. */
#define CHAIN_MAX 16u

typedef struct Entry {
        uint64_t key;
        UT_hash_handle hh;
} Entry;

static const uint64_t secrets[][2] = {
        {UINT64_C(0x2545f4914f6cdd1d), UINT64_C(0x9e3779b97f4a7c15)},
        {UINT64_C(0xd1b54a32d192ed03), UINT64_C(0xbf58476d1ce4e5b9)},
        {UINT64_C(0x8cb92ba72f3d8dd7), UINT64_C(0x94d049bb133111eb)},
        {UINT64_C(0x5851f42d4c957f2d), UINT64_C(0xda942042e4dd58b5)},
        /* Without the second product, 63 of 1,000 numbers in a row meet under these. */
        {UINT64_C(0x1d6718948ccfef70), UINT64_C(0xffce06427bed27ff)},
};

static uint64_t keys[N_KEYS];

static void keys_by_step(uint64_t step) {
        for (unsigned i = 0; i < N_KEYS; ++i)
                keys[i] = i * step;
}

/* Those that one bucket of 1,024 had, all of them, when the hash was of a known factor alone. */
static void keys_of_one_bucket(void) {
        uint64_t key = 0;

        for (unsigned i = 0; i < N_KEYS; ++key)
                if ((key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % N_BUCKETS == 0)
                        keys[i++] = key;
}

static void assert_spread(void) {
        for (unsigned s = 0; s < ARRAY_SIZE(secrets); ++s) {
                unsigned n_in[N_BUCKETS] = {0};

                table_salt = secrets[s][0];
                table_factor = secrets[s][1];
                for (unsigned i = 0; i < N_KEYS; ++i) {
                        unsigned bucket = table_hash(&keys[i], sizeof(keys[i])) % N_BUCKETS;

                        assert_true(++n_in[bucket] <= CHAIN_MAX);
                }
        }
}

/* First: the others set what is random. */
static void each_process_has_numbers_of_its_own(void **state) {
        assert_true(table_factor & 1);
        for (unsigned s = 0; s < ARRAY_SIZE(secrets); ++s) {
                assert_int_not_equal(table_salt, secrets[s][0]);
                assert_int_not_equal(table_factor, secrets[s][1]);
        }
}

static void numbers_in_a_row_spread(void **state) {
        keys_by_step(1);
        assert_spread();
}

static void numbers_that_differ_in_few_bits_spread(void **state) {
        /* Up to where 1,000 keys are still different ones. */
        for (unsigned bit = 1; bit <= 54; ++bit) {
                keys_by_step(UINT64_C(1) << bit);
                assert_spread();
        }
}

static void numbers_that_met_under_a_known_factor_spread(void **state) {
        keys_of_one_bucket();
        assert_spread();
}

static void what_is_put_in_is_found(void **state) {
        static Entry entries[N_KEYS];
        Entry *table = NULL, *entry;
        uint64_t absent = UINT64_MAX;

        keys_of_one_bucket();
        for (unsigned i = 0; i < N_KEYS; ++i) {
                entries[i].key = keys[i];
                HASH_ADD(hh, table, key, sizeof(entries[i].key), &entries[i]);
        }
        assert_true(table->hh.tbl->num_buckets >= N_KEYS / 10);
        assert_int_equal(table->hh.tbl->noexpand, 0);
        for (unsigned i = 0; i < N_KEYS; ++i) {
                HASH_FIND(hh, table, &keys[i], sizeof(keys[i]), entry);
                assert_ptr_equal(entry, &entries[i]);
        }
        HASH_FIND(hh, table, &absent, sizeof(absent), entry);
        assert_null(entry);
        HASH_CLEAR(hh, table);
}

static void longer_keys_are_hashed_too(void **state) {
        assert_int_not_equal(table_hash("one of many", 11), table_hash("two of many", 11));
}

/* Keys like those of arenas in the keeper's store: nobody knows which ones meet. */
static void longer_keys_spread_and_depend_on_the_secret(void **state) {
        unsigned n_same = 0, n_in[N_BUCKETS] = {0}, first[N_KEYS];
        char key[32];

        for (unsigned s = 0; s < 2; ++s) {
                table_salt = secrets[s][0];
                table_factor = secrets[s][1];
                memset(n_in, 0, sizeof(n_in));
                for (unsigned i = 0; i < N_KEYS; ++i) {
                        size_t n_key = (size_t)snprintf(key, sizeof(key), "arena-%u", 1000000 + i);
                        unsigned bucket = table_hash(key, n_key) % N_BUCKETS;

                        assert_true(++n_in[bucket] <= CHAIN_MAX);
                        n_same += s && first[i] == bucket;
                        first[i] = bucket;
                }
        }
        assert_true(n_same < CHAIN_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_process_has_numbers_of_its_own),
                cmocka_unit_test(numbers_in_a_row_spread),
                cmocka_unit_test(numbers_that_differ_in_few_bits_spread),
                cmocka_unit_test(numbers_that_met_under_a_known_factor_spread),
                cmocka_unit_test(what_is_put_in_is_found),
                cmocka_unit_test(longer_keys_are_hashed_too),
                cmocka_unit_test(longer_keys_spread_and_depend_on_the_secret),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
