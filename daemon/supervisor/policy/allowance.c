/* SPDX-License-Identifier: Apache-2.0 */
#include "allowance.h"

#include "util/macro.h"

#define ALLOWANCE_DOUBLINGS_MAX 30u

static uint64_t allowance_cost_ns(const Allowance *allowance, const AllowanceRule *rule) {
        return MIN(rule->every_ns << MIN(allowance->n_over, ALLOWANCE_DOUBLINGS_MAX),
                   rule->most_ns);
}

void allowance_use(Allowance *allowance, const AllowanceRule *rule, uint64_t now_ns) {
        if (now_ns > allowance->paid_ns + rule->forget_ns)
                allowance->n_over = 0;
        allowance->paid_ns = MAX(allowance->paid_ns, now_ns) + allowance_cost_ns(allowance, rule);
        if (allowance_until(allowance, rule, now_ns))
                allowance->n_over++;
}

uint64_t allowance_until(const Allowance *allowance, const AllowanceRule *rule, uint64_t now_ns) {
        uint64_t free_ns = rule->n_free * rule->every_ns;

        return allowance->paid_ns > now_ns + free_ns ? allowance->paid_ns - free_ns : 0;
}
