/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_WHEN_H
#define GPUQ_CLI_WHEN_H

/*
 * When
 *
 * Points in time as people type and read them, in local time.
 */

#include <stdint.h>
#include <time.h>

/* What an option's value may look like, for cli_option(). */
#define WHEN_FORMS                                                                                 \
        "a time, such as 2026-05-31, \"2026-05-31 14:30\", 14:30, today, yesterday, now or now-2h"

typedef struct When {
        char text[40];
} When;

/** when_parse() - at @now: one of WHEN_FORMS; also units s, m, h, d and w. Return: 0 or -EINVAL. */
int when_parse(const char *text, time_t now, uint64_t *ret_ms);
/** when_midnight() - the begin of the day that @offset days follow; -1: of the day before. */
time_t when_midnight(time_t at, int offset);
/** when_week() - the same for weeks, which begin on Monday. */
time_t when_week(time_t at, int offset);
/** when_month() - the same for months. */
time_t when_month(time_t at, int offset);
/** when_show() - "2026-05-31 14:30:00". */
When when_show(uint64_t ms);
/** when_show_week() - "2026-W22", of the week as ISO 8601 counts it. */
When when_show_week(uint64_t ms);
/** when_iso() - "2026-05-31T14:30:00+02:00". */
When when_iso(uint64_t ms);

#endif
