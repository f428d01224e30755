/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure.h"

#define MS_NS UINT64_C(1000000)

/* @now_ns may be the start of the turn, before the try. */
bool pressure_is_on(const Pressure *pressure, uint64_t now_ns) {
        return pressure->n_others && now_ns < pressure->tried_ns + PRESSURE_FORGET_MS * MS_NS;
}

void pressure_clear(Pressure *pressure) {
        *pressure = (Pressure){0};
}

void pressure_note(Pressure *pressure, unsigned n_others, uint64_t now_ns) {
        if (!pressure_is_on(pressure, now_ns))
                *pressure = (Pressure){.since_ns = now_ns};
        pressure->n_others = n_others;
        pressure->n_tries++;
        pressure->tried_ns = now_ns;
        pressure->was_in_vain = pressure->was_woken;
        pressure->was_woken = false;
}

uint64_t pressure_delay_ns(const Pressure *pressure) {
        uint64_t delay_ms = PRESSURE_RETRY_MS;

        for (unsigned i = 1; i < pressure->n_tries && delay_ms < PRESSURE_RETRY_MAX_MS; ++i)
                delay_ms *= 2;
        return delay_ms * MS_NS;
}
