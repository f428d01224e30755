/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BASE_SPIN_H
#define GPUQ_BASE_SPIN_H

/*
 * Spin
 *
 * How long a waiting thread polls before it sleeps; it yields the core after each
 * poll. The budget is twice the longest recent wait, which covers most waits, up to
 * a limit. It shrinks after waits that were longer than the budget. If another
 * thread keeps the core for long after a yield, the machine is busy, and waits sleep
 * at once until it is idle again (util/contention.h).
 * Pure: time comes in as an argument.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/contention.h"

#define SPIN_FIRST_NS UINT64_C(100000) /* before anything is known */
#define SPIN_GAP_NS   UINT64_C(200000) /* between two polls: another thread keeps the core */
#define SPIN_SLICE_NS UINT64_C(500000) /* a gap as long as a time slice, even if the wait is over */
#define SPIN_FRESH_NS UINT64_C(1000000) /* of computing before a wait: see spin_may_yield() */
#define SPIN_FORGET   1024u             /* each later wait takes off one part in so many */
#define SPIN_LESS     16u               /* at least this part of the first */

typedef struct Spin {
        uint64_t limit_ns;  /* 0: never */
        uint64_t budget_ns; /* of the next wait */
        uint64_t begin_ns;  /* of this wait */
        uint64_t last_ns;   /* the last poll */
        uint64_t end_ns;    /* of the last wait */
        bool is_lost;       /* another thread kept the core in this wait */
        Contention contention;
} Spin;

/** spin_init() - @limit_ns: at most so long at a time, 0: never. */
void spin_init(Spin *spin, uint64_t limit_ns);
/** spin_begin() - a wait begins. Return: false: sleep at once. */
bool spin_begin(Spin *spin, uint64_t now_ns);
/** spin_go_on() - a poll has ended. @found: it was successful. Return: false: stop polling: found, or sleep. */
bool spin_go_on(Spin *spin, bool found, uint64_t now_ns);
/**
 * spin_may_yield() - may the thread yield its core between two polls?
 *
 * Not at once after the program has computed: threads of a numerical library may still spin, and
 * one of them would keep the core for a time slice.
 */
bool spin_may_yield(const Spin *spin);
/** spin_end() - the wait is over, with or without sleep. */
void spin_end(Spin *spin, uint64_t now_ns);

#endif
