/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pace
 */
#include "worker/pace.h"

#include "util/macro.h"

#define PACE_SPIN_NS     UINT64_C(1000000)
#define PACE_SPIN_CPU_NS UINT64_C(5000)
#define PACE_NAP_MIN_NS  UINT64_C(10000)
#define PACE_NAP_MAX_NS  UINT64_C(1000000)

void pace_init(Pace *pace, bool cpu, uint64_t idle_ns) {
        *pace = (Pace){
                .spin_ns = cpu ? PACE_SPIN_CPU_NS : PACE_SPIN_NS,
                .idle_ns = idle_ns,
                .nap_ns = PACE_NAP_MIN_NS,
        };
}

bool pace_may_sleep(const Pace *pace, uint64_t now_ns) {
        return now_ns - pace->event_ns >= pace->idle_ns;
}

void pace_event(Pace *pace, uint64_t now_ns) {
        pace->event_ns = now_ns;
        pace->nap_ns = PACE_NAP_MIN_NS;
}

uint64_t pace_next(Pace *pace, uint64_t now_ns) {
        uint64_t nap_ns = pace->nap_ns;

        if (now_ns - pace->event_ns < pace->spin_ns)
                return 0;

        /* A quarter more each time: a job that took t is seen at most t/4 late. */
        pace->nap_ns = MIN(nap_ns + nap_ns / 4, PACE_NAP_MAX_NS);
        return nap_ns;
}
