/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiet
 */
#include "worker/quiet.h"

#include "util/macro.h"

bool quiet_may_be(const Quiet *quiet, uint64_t now_ns) {
        return now_ns < quiet->window_ns || now_ns >= quiet->window_ns + QUIET_GAP_NS;
}

void quiet_ask(Quiet *quiet, uint64_t until_ns, uint64_t now_ns) {
        if (!quiet_may_be(quiet, now_ns))
                return;
        if (now_ns >= quiet->window_ns)
                quiet->window_ns = now_ns + QUIET_NS;
        quiet->until_ns = MIN(until_ns, quiet->window_ns);
}

bool quiet_is(const Quiet *quiet, uint64_t now_ns) {
        return now_ns < quiet->until_ns;
}

void quiet_end(Quiet *quiet) {
        quiet->until_ns = 0;
}
