/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_TABLE_H
#define GPUQ_UTIL_TABLE_H

/*
 * Table
 *
 * uthash, with a hash of a few instructions for keys that are numbers, as nearly all keys here
 * are: a job needs a dozen lookups by id. All users of a table must include this header.
 *
 * Clients choose some of the numbers. They must not know which numbers share a bucket, because
 * uthash stops growing a table with crowded buckets, and each lookup then searches all of them. So
 * the hash depends on two random numbers of this process.
 */

#include <stdint.h>
#include <string.h>

#include <uthash.h>

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, n_key, hash) ((hash) = table_hash((key), (n_key)))

/* Random from before main(); table_factor is odd. */
extern uint64_t table_salt, table_factor;

/*
 * uthash takes the low bits, which in a product know only the number's low bits; those from 64 on know them
 * all, but one factor in 200 leaves them bunched for numbers in a row. The second product mends that.
 */
static inline uint64_t table_mix(uint64_t number) {
        unsigned __int128 product = (unsigned __int128)(number ^ table_salt) * table_factor;

        number = (uint64_t)product ^ (uint64_t)(product >> 64);
        return number * UINT64_C(0x9e3779b97f4a7c15);
}

/* Eight bytes at a time; what is before them changes what they are mixed with. */
static inline uint64_t table_mix_all(const uint8_t *key, size_t n_key) {
        uint64_t sum = table_mix(n_key), part;

        for (size_t n; n_key; key += n, n_key -= n) {
                part = 0;
                n = n_key < sizeof(part) ? n_key : sizeof(part);
                memcpy(&part, key, n);
                sum = table_mix((sum << 29 | sum >> 35) ^ part);
        }
        return sum;
}

static inline unsigned table_hash(const void *key, size_t n_key) {
        uint64_t number = 0;

        if (n_key > sizeof(number))
                return (unsigned)(table_mix_all(key, n_key) >> 32);
        memcpy(&number, key, n_key);
        return (unsigned)(table_mix(number) >> 32);
}

#endif
