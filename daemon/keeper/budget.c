/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/budget.h"

#include "util/macro.h"

static uint64_t budget_cost_us(const Budget *budget) {
        return 1000000 / budget->per_s;
}

/* From then on one is there. */
static uint64_t budget_free_at_us(const Budget *budget) {
        uint64_t rest_us = (budget->n_max - 1) * budget_cost_us(budget);

        return budget->full_at_us > rest_us ? budget->full_at_us - rest_us : 0;
}

bool budget_take(Budget *budget, uint64_t now_ms) {
        uint64_t now_us = now_ms * 1000;

        if (now_us < budget_free_at_us(budget))
                return false;
        budget->full_at_us = MAX(budget->full_at_us, now_us) + budget_cost_us(budget);
        return true;
}

uint64_t budget_free_at(const Budget *budget) {
        return (budget_free_at_us(budget) + 999) / 1000;
}
