/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_BUDGET_H
#define GPUQ_KEEPER_BUDGET_H

/*
 * Budget
 *
 * A token bucket: so many at once, and so many a second from then on. Pure: time
 * comes in as an argument, in ms.
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct Budget {
        unsigned n_max;      /* at once */
        unsigned per_s;      /* at most a million */
        uint64_t full_at_us; /* when all of it is there again */
} Budget;

/** budget_take() - one of it. Return: whether there was one. */
bool budget_take(Budget *budget, uint64_t now_ms);
/** budget_free_at() - when one can be taken, in ms; in the past if one can be now. */
uint64_t budget_free_at(const Budget *budget);

#endif
