/* SPDX-License-Identifier: Apache-2.0 */
#include "util/human.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/macro.h"

#define NS_PER_S 1000000000ull

/* Three figures: 1.23, 12.3, 123. The limits are where %.2f and %.1f would round up to a digit more. */
static Human human_figure(double value, const char *unit) {
        int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
        Human human;

        snprintf(human.text, sizeof(human.text), "%.*f %s", decimals, value, unit);
        return human;
}

Human human_bytes(uint64_t bytes) {
        static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
        double value = (double)bytes / 1024;
        size_t unit = 0;
        Human human;

        if (bytes < 1024) {
                snprintf(human.text, sizeof(human.text), "%" PRIu64 " B", bytes);
                return human;
        }

        while (value >= 1023.5 && unit + 1 < ARRAY_SIZE(units)) {
                value /= 1024;
                unit++;
        }
        return human_figure(value, units[unit]);
}

static Human human_long(uint64_t s) {
        Human human;

        if (s < 3600)
                snprintf(human.text, sizeof(human.text), "%um %02us", (unsigned)(s / 60),
                         (unsigned)(s % 60));
        else if (s < 86400)
                snprintf(human.text, sizeof(human.text), "%uh %02um", (unsigned)(s / 3600),
                         (unsigned)(s / 60 % 60));
        else
                snprintf(human.text, sizeof(human.text), "%" PRIu64 "d %02uh", s / 86400,
                         (unsigned)(s / 3600 % 24));
        return human;
}

Human human_ns(uint64_t ns) {
        if (ns == 0)
                return (Human){"0 s"};
        if (ns < 1000)
                return human_figure((double)ns, "ns");
        if (ns < 999500)
                return human_figure((double)ns / 1e3, "us");
        if (ns < 999500000)
                return human_figure((double)ns / 1e6, "ms");
        if (ns < 60 * NS_PER_S)
                return human_figure((double)ns / 1e9, "s");
        return human_long(ns / NS_PER_S);
}

Human human_us(uint64_t us) {
        return us > UINT64_MAX / 1000 ? human_long(us / 1000000) : human_ns(us * 1000);
}
