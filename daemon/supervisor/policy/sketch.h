/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SKETCH_H
#define GPUQ_SUPERVISOR_SKETCH_H

/*
 * Sketch
 *
 * Counts durations in classes of which four make a factor of two, so that any quantile can be told
 * to about 10 %. Sketches of the same thing can be added. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKETCH_CLASSES     248u /* for any duration */
#define SKETCH_BYTES_ENTRY 5u   /* of a class that is not empty, packed */
#define SKETCH_BYTES_MAX   (SKETCH_CLASSES * SKETCH_BYTES_ENTRY)

typedef struct Sketch {
        uint32_t counts[SKETCH_CLASSES];
} Sketch;

/** sketch_class() - of a duration below 2^64 - 4; the first four are exact. */
static inline unsigned sketch_class(uint64_t us) {
        uint64_t value = us + 4;
        unsigned power = 61u - (unsigned)__builtin_clzll(value); /* value >> power is 4 to 7 */

        return (power << 2) + (unsigned)(value >> power) - 4;
}

/** sketch_add() - count one more. */
static inline void sketch_add(Sketch *sketch, uint64_t us) {
        sketch->counts[sketch_class(us)]++;
}

/** sketch_add_many() - count @n more of that duration. */
static inline void sketch_add_many(Sketch *sketch, uint64_t us, uint64_t n) {
        sketch->counts[sketch_class(us)] += (uint32_t)n;
}

/** sketch_add_all() - count what another one counted. */
void sketch_add_all(Sketch *sketch, const Sketch *other);
/** sketch_is_empty() - it counted nothing. */
bool sketch_is_empty(const Sketch *sketch);
/** sketch_quantile() - the duration that a part @q of all did not exceed; 0 for an empty one. */
uint64_t sketch_quantile(const Sketch *sketch, double q);
/** sketch_pack() - Return: bytes written. */
size_t sketch_pack(const Sketch *sketch, uint8_t data[SKETCH_BYTES_MAX]);
/** sketch_unpack_add() - add what was packed; other data adds nothing that can be relied on. */
void sketch_unpack_add(Sketch *sketch, const uint8_t *data, size_t n_data);

#endif
