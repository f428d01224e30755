/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pace
 */
#include "util/pace.h"

#include "util/macro.h"

#define PACE_SPIN_NS     UINT64_C(1000000)
#define PACE_SPIN_CPU_NS UINT64_C(5000)
/* The shortest jobs of a GPU end within this time, and two context switches would take as long. */
#define PACE_SPIN_CONTENDED_NS UINT64_C(20000)
#define PACE_IDLE_NS           UINT64_C(100000) /* of looking with nothing in flight */
/* A job that took t is noticed at most t/64 late, up to the longest nap: 38 us where the
 * driver's time slice is 2.4 ms. */
#define PACE_PART       64u
#define PACE_PART_CPU   16u /* and where the cores are wanted */
#define PACE_NAP_MIN_NS UINT64_C(10000)
#define PACE_NAP_MAX_NS UINT64_C(1000000)

void pace_init(Pace *pace, bool cpu) {
        *pace = (Pace){
                .spin_ns = cpu ? PACE_SPIN_CPU_NS : PACE_SPIN_NS,
                .part = cpu ? PACE_PART_CPU : PACE_PART,
        };
}

void pace_event(Pace *pace, uint64_t now_ns) {
        pace->event_ns = now_ns;
}

uint64_t pace_next(const Pace *pace, bool is_contended, uint64_t now_ns) {
        uint64_t spin_ns =
                is_contended ? MIN(pace->spin_ns, PACE_SPIN_CONTENDED_NS) : pace->spin_ns;
        unsigned part = is_contended ? PACE_PART_CPU : pace->part;
        uint64_t past_ns = now_ns - pace->event_ns;

        if (past_ns < spin_ns)
                return 0;
        return MIN(MAX(past_ns / part, PACE_NAP_MIN_NS), PACE_NAP_MAX_NS);
}

bool pace_may_sleep(const Pace *pace, uint64_t poll_ns, bool is_busy, uint64_t now_ns) {
        return now_ns - pace->event_ns >= (is_busy ? poll_ns : MIN(poll_ns, PACE_IDLE_NS));
}
