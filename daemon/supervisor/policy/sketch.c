/* SPDX-License-Identifier: Apache-2.0 */
#include "sketch.h"

#include <string.h>

void sketch_add_all(Sketch *sketch, const Sketch *other) {
        for (unsigned i = 0; i < SKETCH_CLASSES; ++i)
                sketch->counts[i] += other->counts[i];
}

bool sketch_is_empty(const Sketch *sketch) {
        for (unsigned i = 0; i < SKETCH_CLASSES; ++i)
                if (sketch->counts[i])
                        return false;
        return true;
}

/* The middle of its durations. */
static uint64_t sketch_middle(unsigned class) {
        unsigned power = class >> 2;
        uint64_t lowest = (uint64_t)(4 + (class & 3)) << power;

        return lowest + ((1ull << power) >> 1) - 4;
}

uint64_t sketch_quantile(const Sketch *sketch, double q) {
        uint64_t n_all = 0, n = 0;

        for (unsigned i = 0; i < SKETCH_CLASSES; ++i)
                n_all += sketch->counts[i];
        for (unsigned i = 0; i < SKETCH_CLASSES; ++i) {
                n += sketch->counts[i];
                if (n && (double)n >= q * (double)n_all)
                        return sketch_middle(i);
        }
        return 0;
}

/* Each class that is not empty: its number, and its count with the lowest byte first. */
size_t sketch_pack(const Sketch *sketch, uint8_t data[SKETCH_BYTES_MAX]) {
        uint8_t *p = data;

        for (unsigned i = 0; i < SKETCH_CLASSES; ++i) {
                uint32_t count = sketch->counts[i];

                if (!count)
                        continue;
                *p++ = (uint8_t)i;
                for (unsigned shift = 0; shift < 32; shift += 8)
                        *p++ = (uint8_t)(count >> shift);
        }
        return (size_t)(p - data);
}

void sketch_unpack_add(Sketch *sketch, const uint8_t *data, size_t n_data) {
        for (size_t i = 0; i + SKETCH_BYTES_ENTRY <= n_data; i += SKETCH_BYTES_ENTRY) {
                const uint8_t *p = data + i;
                uint32_t count =
                        p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;

                if (p[0] < SKETCH_CLASSES)
                        sketch->counts[p[0]] += count;
        }
}
