/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spin
 */

#include "spin.h"

#include "util/macro.h"

void spin_init(Spin *spin, uint64_t limit_ns) {
        *spin = (Spin){.limit_ns = limit_ns, .budget_ns = limit_ns};
}

bool spin_begin(Spin *spin, uint64_t now_ns) {
        spin->begin_ns = spin->last_ns = now_ns;
        return spin->budget_ns > 0 && now_ns >= spin->pause_ns;
}

bool spin_go_on(Spin *spin, uint64_t now_ns) {
        if (now_ns - spin->last_ns > SPIN_GAP_NS) {
                spin->pause_ns = now_ns + SPIN_PAUSE_NS;
                return false;
        }

        spin->last_ns = now_ns;
        return now_ns - spin->begin_ns < spin->budget_ns;
}

/* What was slept through counts too: else a budget that is too small for what comes would stay so. */
void spin_end(Spin *spin, uint64_t now_ns) {
        if (now_ns - spin->begin_ns <= spin->limit_ns)
                spin->budget_ns = spin->limit_ns;
        else
                spin->budget_ns = MAX(spin->budget_ns / 2, spin->limit_ns / SPIN_LESS);
}
