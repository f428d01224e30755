/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BASE_SPIN_H
#define GPUQ_BASE_SPIN_H

/*
 * Spin
 *
 * How long a thread that waits looks again and again before it sleeps, and yields
 * the core after each look. Twice as long as the longest of its waits of late, which for most of them
 * is enough, and no longer than allowed: less and less after waits that were longer than
 * that, and not at all for a while once whoever got the core turns out to keep it.
 * Pure: time comes in as an argument.
 */

#include <stdbool.h>
#include <stdint.h>

#define SPIN_FIRST_NS UINT64_C(100000)   /* before anything is known */
#define SPIN_GAP_NS   UINT64_C(200000)   /* between two looks: somebody keeps the core */
#define SPIN_PAUSE_NS UINT64_C(20000000) /* no spinning for so long then */
#define SPIN_FORGET   1024u              /* each later wait takes one part in so many off it */
#define SPIN_LESS     16u                /* at least this part of the first */

typedef struct Spin {
        uint64_t limit_ns;  /* 0: never */
        uint64_t budget_ns; /* of the next wait */
        uint64_t pause_ns;  /* until then nobody spins */
        uint64_t begin_ns;  /* of this wait */
        uint64_t last_ns;   /* the last look */
        bool is_lost;       /* somebody kept the core in this wait */
} Spin;

/** spin_init() - @limit_ns: at most so long at a time, 0: never. */
void spin_init(Spin *spin, uint64_t limit_ns);
/** spin_begin() - a wait begins. Return: false: sleep at once. */
bool spin_begin(Spin *spin, uint64_t now_ns);
/** spin_go_on() - a look has ended. @found: with something. Return: false if so, or to sleep. */
bool spin_go_on(Spin *spin, bool found, uint64_t now_ns);
/** spin_end() - what was waited for is there, with or without sleep. */
void spin_end(Spin *spin, uint64_t now_ns);

#endif
