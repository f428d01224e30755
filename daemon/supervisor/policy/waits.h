/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WAITS_H
#define GPUQ_SUPERVISOR_WAITS_H

/*
 * Waits
 *
 * How long the jobs waited that ended in about the last minute. Two sketches of half a minute each: the
 * older one is dropped when the newer one is full, so a reading is of the last 30 to 60 s. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sketch.h"

#define WAITS_HALF_NS 30000000000ull

/* Zeroed: empty. */
typedef struct Waits {
        uint64_t begin_ns; /* of the newer half */
        Sketch halves[2];  /* the newer one, the older one */
} Waits;

/** waits_turn() - begin a new half, if it is time. For waits_add(). */
void waits_turn(Waits *waits, uint64_t now_ns);

/** waits_add() - one more job ended. */
static inline void waits_add(Waits *waits, uint64_t waited_us, uint64_t now_ns) {
        if (now_ns - waits->begin_ns >= WAITS_HALF_NS)
                waits_turn(waits, now_ns);
        sketch_add(&waits->halves[0], waited_us);
}

/** waits_add_many() - likewise @n jobs that waited that long. */
static inline void waits_add_many(Waits *waits, uint64_t waited_us, uint64_t n, uint64_t now_ns) {
        if (now_ns - waits->begin_ns >= WAITS_HALF_NS)
                waits_turn(waits, now_ns);
        sketch_add_many(&waits->halves[0], waited_us, n);
}

/** waits_read() - the sum of both halves, without what is too old. Return: false: no job ended. */
bool waits_read(const Waits *waits, uint64_t now_ns, Sketch *ret_sketch);

#endif
