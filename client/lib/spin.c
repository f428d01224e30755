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
        if (spin->budget_ns == 0 || now_ns < spin->pause_ns)
                return false;

        spin->until_ns = now_ns + spin->budget_ns;
        spin->last_ns = now_ns;
        return true;
}

bool spin_go_on(Spin *spin, uint64_t now_ns) {
        if (now_ns - spin->last_ns > SPIN_GAP_NS) {
                spin->pause_ns = now_ns + SPIN_PAUSE_NS;
                return false;
        }

        spin->last_ns = now_ns;
        return now_ns < spin->until_ns;
}

void spin_end(Spin *spin, bool found, uint64_t now_ns) {
        if (found)
                spin->budget_ns = spin->limit_ns;
        else if (now_ns >= spin->until_ns)
                spin->budget_ns = MAX(spin->budget_ns / 2, spin->limit_ns / SPIN_LESS);
}
