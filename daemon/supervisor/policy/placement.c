/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include "util/macro.h"

uint64_t placement_left_ns(uint64_t expected_ns, uint64_t elapsed_ns, bool is_known) {
        if (!is_known)
                return MAX(expected_ns, elapsed_ns);
        return expected_ns > elapsed_ns ? expected_ns - elapsed_ns : elapsed_ns - expected_ns;
}
