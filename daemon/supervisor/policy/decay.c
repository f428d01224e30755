/* SPDX-License-Identifier: Apache-2.0 */
#include "decay.h"

#include <math.h>

void decay_add(Decay *decay, uint64_t half_life_ns, double amount, uint64_t now_ns) {
        if (now_ns >= decay->at_ns && now_ns - decay->at_ns >= half_life_ns / DECAY_STEPS) {
                decay->sum = decay_sum(decay, half_life_ns, now_ns);
                decay->at_ns = now_ns;
        }
        if (half_life_ns)
                decay->sum += amount;
}

double decay_sum(const Decay *decay, uint64_t half_life_ns, uint64_t now_ns) {
        if (!half_life_ns)
                return 0;
        if (now_ns <= decay->at_ns)
                return decay->sum;
        return decay->sum * exp2(-(double)(now_ns - decay->at_ns) / (double)half_life_ns);
}
