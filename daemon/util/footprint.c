/* SPDX-License-Identifier: Apache-2.0 */
#include "util/footprint.h"

#include <string.h>

static uint64_t footprint_times(uint64_t n, uint64_t n_bytes) {
        uint64_t product;

        return __builtin_mul_overflow(n, n_bytes, &product) ? UINT64_MAX : product;
}

void footprint_lines(const ConfigLimits *limits, FootprintLine lines[FOOTPRINT_LINES]) {
        const FootprintLine all[FOOTPRINT_LINES] = {
                {"unfinished jobs", "queued_bytes", limits->queued_bytes},
                {"connections", "sessions",
                 footprint_times(limits->sessions, FOOTPRINT_SESSION + FOOTPRINT_SOCKET)},
                {"unfinished and unread messages", NULL, FOOTPRINT_BUFFERS},
                {"texts, waits and open arenas", NULL, FOOTPRINT_RECORDS + FOOTPRINT_WAITS},
                {"rings", NULL, FOOTPRINT_RINGS},
                {"prepared jobs", NULL, FOOTPRINT_PREPARED},
                {"arenas and ended jobs", NULL,
                 FOOTPRINT_ARENAS * FOOTPRINT_ARENA + (1 + FOOTPRINT_PARTS) * FOOTPRINT_HISTORY},
                {"modules", "modules", footprint_times(limits->modules, FOOTPRINT_MODULE)},
                {"detached jobs", "detached_jobs",
                 footprint_times(limits->detached_jobs, FOOTPRINT_DETACHED)},
        };

        memcpy(lines, all, sizeof(all));
}

uint64_t footprint_sum(const ConfigLimits *limits) {
        FootprintLine lines[FOOTPRINT_LINES];
        uint64_t sum = 0;

        footprint_lines(limits, lines);
        for (size_t i = 0; i < FOOTPRINT_LINES; i++)
                if (__builtin_add_overflow(sum, lines[i].n_bytes, &sum))
                        return UINT64_MAX;
        return sum;
}
