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

bool waits_read(const Waits *waits, uint64_t now_ns, Sketch *ret_sketch) {
        uint64_t passed_ns = now_ns - waits->begin_ns;
        Sketch sum;

        if (passed_ns >= 2 * WAITS_HALF_NS)
                return false;
        sum = waits->halves[0];
        if (passed_ns < WAITS_HALF_NS)
                sketch_add_all(&sum, &waits->halves[1]);
        if (sketch_is_empty(&sum))
                return false;
        *ret_sketch = sum;
        return true;
}
