/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_TABLE_H
#define GPUQ_UTIL_TABLE_H

/*
 * Table
 *
 * uthash, with a hash of a few instructions for keys that are a number, as nearly all here
 * are: a job looks a dozen things up by their ids. All who use one table include this.
 *
 * Clients choose some of the numbers. They must not know which ones meet in a bucket: uthash gives up growing a table
 * whose entries do, and each look-up then goes through all of them. So the hash has two numbers of this process alone.
 */

#include <stdint.h>
#include <string.h>

#include <uthash.h>

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, n_key, hash) ((hash) = table_hash((key), (n_key)))

/* Random from before main(); table_factor is odd. */
extern uint64_t table_salt, table_factor;

static inline unsigned table_hash(const void *key, size_t n_key) {
        uint64_t number = 0;
        unsigned __int128 product;
        unsigned hash;

        if (n_key > sizeof(number)) {
                HASH_SFH(key, n_key, hash);
                return hash;
        }
        memcpy(&number, key, n_key);
        /*
         * uthash takes the low bits, which in a product know only the number's low bits; those from 64 on know them
         * all, but one factor in 200 leaves them bunched for numbers in a row. The second product mends that.
         */
        product = (unsigned __int128)(number ^ table_salt) * table_factor;
        number = (uint64_t)product ^ (uint64_t)(product >> 64);
        return (unsigned)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

#endif
