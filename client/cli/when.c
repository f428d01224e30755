/* SPDX-License-Identifier: Apache-2.0 */
#include "when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

/* ---- read ------------------------------------------------------------------ */

static bool when_read_form(const char *text, const char *form, struct tm *tm) {
        const char *end = strptime(text, form, tm);

        return end && !*end;
}

/* Of a day and a time; a form without a day means today. */
static bool when_read(const char *text, time_t now, struct tm *tm) {
        static const char *const forms[] = {
                "%Y-%m-%d",          "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S",
                "%Y-%m-%dT%H:%M:%S", "%H:%M",          "%H:%M:%S"};

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                (void)localtime_r(&now, tm);
                tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
                tm->tm_isdst = -1;
                if (when_read_form(text, forms[i], tm))
                        return true;
        }
        return false;
}

/* mktime() would make March 3 of February 31. */
static bool when_exists(const struct tm *tm) {
        struct tm copy = *tm;

        copy.tm_isdst = -1;
        return mktime(&copy) != -1 && copy.tm_mday == tm->tm_mday && copy.tm_mon == tm->tm_mon;
}

static int when_ago(const char *text, uint64_t *ret_s) {
        static const struct {
                char unit;
                unsigned seconds;
        } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
        unsigned long long n;
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        n = strtoull(text, &end, 10);
        if (errno || n > UINT32_MAX || !*end || end[1])
                return -EINVAL;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (*end == units[i].unit) {
                        *ret_s = n * units[i].seconds;
                        return 0;
                }
        return -EINVAL;
}

int when_parse(const char *text, time_t now, uint64_t *ret_ms) {
        uint64_t ago_s = 0;
        struct tm tm;
        time_t at;

        if (strcmp(text, "today") == 0)
                at = when_midnight(now, 0);
        else if (strcmp(text, "yesterday") == 0)
                at = when_midnight(now, -1);
        else if (strcmp(text, "now") == 0)
                at = now;
        else if (strncmp(text, "now-", 4) == 0 && when_ago(text + 4, &ago_s) == 0)
                at = now - (time_t)ago_s;
        else if (when_read(text, now, &tm) && when_exists(&tm))
                at = mktime(&tm);
        else
                return -EINVAL;
        *ret_ms = at > 0 ? (uint64_t)at * 1000 : 0;
        return 0;
}

/* ---- calendar -------------------------------------------------------------- */

static time_t when_begin(time_t at, int days, int months, bool month) {
        struct tm tm;

        (void)localtime_r(&at, &tm);
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
        tm.tm_isdst = -1;
        tm.tm_mday = month ? 1 : tm.tm_mday + days;
        tm.tm_mon += months;
        return mktime(&tm);
}

time_t when_midnight(time_t at, int offset) {
        return when_begin(at, offset, 0, false);
}

time_t when_week(time_t at, int offset) {
        struct tm tm;

        (void)localtime_r(&at, &tm);
        return when_begin(at, 7 * offset - (tm.tm_wday + 6) % 7, 0, false);
}

time_t when_month(time_t at, int offset) {
        return when_begin(at, 0, offset, true);
}

/* ---- show ------------------------------------------------------------------ */

static When when_format(uint64_t ms, const char *form) {
        time_t at = (time_t)(ms / 1000);
        struct tm tm;
        When when;

        (void)localtime_r(&at, &tm);
        if (!strftime(when.text, sizeof(when.text), form, &tm))
                when.text[0] = '\0';
        return when;
}

When when_show(uint64_t ms) {
        return when_format(ms, "%Y-%m-%d %H:%M:%S");
}

When when_show_week(uint64_t ms) {
        return when_format(ms, "%G-W%V");
}

/* strftime() writes the offset without the colon. */
When when_iso(uint64_t ms) {
        time_t at = (time_t)(ms / 1000);
        struct tm tm;
        When when;
        size_t n;

        (void)localtime_r(&at, &tm);
        n = strftime(when.text, sizeof(when.text), "%Y-%m-%dT%H:%M:%S%z", &tm);
        if (n < 5) {
                when.text[0] = '\0';
                return when;
        }
        memmove(when.text + n - 1, when.text + n - 2, 3);
        when.text[n - 2] = ':';
        return when;
}
