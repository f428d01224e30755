/* SPDX-License-Identifier: Apache-2.0 */
#include "trim.h"

#include <malloc.h>

#include "util/macro.h"

bool trim_tick(Trim *trim, uint64_t in_use, bool is_busy, uint64_t now_ns) {
        trim->peak = MAX(trim->peak, in_use);
        if (is_busy || trim->peak - in_use < TRIM_LEAST ||
            (trim->last_ns && now_ns - trim->last_ns < TRIM_EVERY_NS))
                return false;

#ifdef __GLIBC__
        (void)malloc_trim(0);
#endif
        trim->peak = in_use;
        trim->last_ns = now_ns;
        trim->n_done++;
        return true;
}
