/* SPDX-License-Identifier: Apache-2.0 */
#include "quota.h"

#include <assert.h>

#include "util/macro.h"

/* The part of @held that is taken from the open half. */
static uint64_t quota_open_part(const Quota *quota, uint64_t held) {
        return held - MIN(held, quota->part);
}

void quota_init(Quota *quota, uint64_t capacity) {
        *quota = (Quota){
                .capacity = capacity,
                .part = capacity / QUOTA_PARTS,
                .for_all = capacity / 2,
        };
}

void quota_init_open(Quota *quota, uint64_t capacity) {
        *quota = (Quota){
                .capacity = capacity,
                .part = capacity / QUOTA_OPEN_PARTS,
                .for_all = capacity - capacity / 8,
        };
}

uint64_t quota_most(const Quota *quota, uint64_t held) {
        uint64_t all = quota->for_all;
        uint64_t others = quota->open - quota_open_part(quota, held);
        uint64_t open = others < all ? (all - others) / 2 : 0;

        if (!quota->capacity)
                return UINT64_MAX;
        /* There may be more users than guaranteed parts. */
        return MIN(quota->part + open, quota->capacity - (quota->taken - held));
}

bool quota_take(Quota *quota, uint64_t held, uint64_t amount) {
        uint64_t most;

        if (!quota->capacity)
                return true;
        most = quota_most(quota, held);
        if (held > most || amount > most - held)
                return false;
        quota->taken += amount;
        quota->open += quota_open_part(quota, held + amount) - quota_open_part(quota, held);
        return true;
}

void quota_give(Quota *quota, uint64_t held, uint64_t amount) {
        assert(amount <= held);
        if (!quota->capacity)
                return;
        quota->taken -= amount;
        quota->open -= quota_open_part(quota, held) - quota_open_part(quota, held - amount);
}
