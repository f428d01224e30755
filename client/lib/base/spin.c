/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spin
 */

#include "spin.h"

#include "util/macro.h"

static uint64_t spin_first_ns(const Spin *spin) {
        return MIN(spin->limit_ns, SPIN_FIRST_NS);
}

void spin_init(Spin *spin, uint64_t limit_ns) {
        *spin = (Spin){.limit_ns = limit_ns};
        spin->budget_ns = spin_first_ns(spin);
        contention_init(&spin->contention);
}

bool spin_begin(Spin *spin, uint64_t now_ns) {
        spin->begin_ns = spin->last_ns = now_ns;
        spin->is_lost = false;
        return spin->budget_ns > 0 && !contention_is_busy(&spin->contention);
}

bool spin_go_on(Spin *spin, bool found, uint64_t now_ns) {
        uint64_t gap_ns = now_ns - spin->last_ns;

        spin->is_lost = gap_ns > SPIN_GAP_NS;
        spin->last_ns = now_ns;
        if (gap_ns > (found ? SPIN_SLICE_NS : SPIN_GAP_NS))
                contention_lost(&spin->contention, now_ns);
        return !found && !spin->is_lost && now_ns - spin->begin_ns < spin->budget_ns;
}

bool spin_may_yield(const Spin *spin) {
        return spin->begin_ns - spin->end_ns < SPIN_FRESH_NS ||
               spin->last_ns - spin->begin_ns >= SPIN_FIRST_NS;
}

/* A wait that ended in sleep counts too. Otherwise a budget that is too small would never grow. */
void spin_end(Spin *spin, uint64_t now_ns) {
        uint64_t wait_ns = now_ns - spin->begin_ns, first_ns = spin_first_ns(spin);

        spin->end_ns = now_ns;
        if (spin->is_lost || contention_is_busy(&spin->contention)) {
                spin->budget_ns = first_ns; /* its length tells only that the core was taken */
                return;
        }
        if (wait_ns > spin->limit_ns) {
                spin->budget_ns = MAX(spin->budget_ns / 2, first_ns / SPIN_LESS);
                return;
        }

        spin->budget_ns -= spin->budget_ns / SPIN_FORGET;
        spin->budget_ns = MIN(MAX(spin->budget_ns, MAX(2 * wait_ns, first_ns)), spin->limit_ns);
}
