/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TABLE_H
#define GPUQ_TABLE_H

/*
 * Table
 *
 * uthash, with a hash of a few instructions for keys that are a number, as nearly all here
 * are: a job looks a dozen things up by their ids. All who use one table include this.
 */

#include <stdint.h>
#include <string.h>

#include <uthash.h>

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, n_key, hash) ((hash) = table_hash((key), (n_key)))

static inline unsigned table_hash(const void *key, size_t n_key) {
        uint64_t number = 0;
        unsigned hash;

        if (n_key > sizeof(number)) {
                HASH_SFH(key, n_key, hash);
                return hash;
        }
        memcpy(&number, key, n_key);
        /* uthash takes the low bits; those of a product know least of the number. */
        return (unsigned)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

#endif
