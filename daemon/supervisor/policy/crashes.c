/* SPDX-License-Identifier: Apache-2.0 */
#include "crashes.h"

#include "util/macro.h"

void crashes_add(Crashes *crashes, uint64_t now_ns) {
        crashes->paid_ns = MAX(crashes->paid_ns, now_ns) + CRASHES_EVERY_NS;
}

uint64_t crashes_until(const Crashes *crashes, uint64_t now_ns) {
        if (crashes->paid_ns <= now_ns + CRASHES_FREE * CRASHES_EVERY_NS)
                return 0;
        return crashes->paid_ns - CRASHES_FREE * CRASHES_EVERY_NS;
}
