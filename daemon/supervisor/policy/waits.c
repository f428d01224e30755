/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include <string.h>

void waits_turn(Waits *waits, uint64_t now_ns) {
        uint64_t passed_ns = now_ns - waits->begin_ns;

        if (passed_ns < WAITS_HALF_NS)
                return;
        if (passed_ns < 2 * WAITS_HALF_NS) {
                waits->halves[1] = waits->halves[0];
                waits->begin_ns += WAITS_HALF_NS;
        } else {
                memset(&waits->halves[1], 0, sizeof(waits->halves[1]));
                waits->begin_ns = now_ns;
        }
        memset(&waits->halves[0], 0, sizeof(waits->halves[0]));
}

Sketch waits_read(const Waits *waits, uint64_t now_ns) {
        Waits now = *waits;

        waits_turn(&now, now_ns);
        sketch_add_all(&now.halves[0], &now.halves[1]);
        return now.halves[0];
}
