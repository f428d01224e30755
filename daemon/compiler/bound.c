/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bound
 */
#include "compiler/bound.h"

#include "util/macro.h"

struct rlimit bound_begin(unsigned memory_mib) {
        struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY}, bound;

        (void)getrlimit(RLIMIT_DATA, &before);
        if (BOUND_IS_OFF)
                return before;
        bound = before;
        bound.rlim_cur = MIN(before.rlim_cur, (rlim_t)memory_mib << 20);
        (void)setrlimit(RLIMIT_DATA, &bound);
        return before;
}

void bound_end(const struct rlimit *before) {
        (void)setrlimit(RLIMIT_DATA, before);
}
