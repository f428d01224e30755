/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include <uv.h>

#include "util/macro.h"

bool limit_log(LimitLog *limit) {
        uint64_t now_ns = uv_hrtime(), full_ns = LIMIT_LOG_BURST * LIMIT_LOG_NS;
        uint64_t credit_ns = limit->last_ns ? limit->credit_ns + now_ns - limit->last_ns : full_ns;

        limit->credit_ns = MIN(credit_ns, full_ns);
        limit->last_ns = now_ns;
        if (limit->credit_ns < LIMIT_LOG_NS)
                return false;
        limit->credit_ns -= LIMIT_LOG_NS;
        return true;
}
