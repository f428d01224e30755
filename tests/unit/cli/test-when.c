/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "when.h"

#define NOW 1780230600 /* 2026-05-31 14:30:00 in Berlin */

static uint64_t at(const char *text) {
        uint64_t ms = 1;

        assert_int_equal(when_parse(text, NOW, &ms), 0);
        return ms / 1000;
}

static void days_and_times_are_local(void **state) {
        assert_int_equal(at("2026-05-31 14:30"), NOW);
        assert_int_equal(at("2026-05-31T14:30:05"), NOW + 5);
        assert_int_equal(at("2026-05-31"), NOW - 14 * 3600 - 1800);
        assert_int_equal(at("14:30"), NOW);
        assert_int_equal(at("today"), at("2026-05-31"));
        assert_int_equal(at("yesterday"), at("2026-05-30"));
}

static void times_ago_have_units(void **state) {
        assert_int_equal(at("now"), NOW);
        assert_int_equal(at("now-90s"), NOW - 90);
        assert_int_equal(at("now-2h"), NOW - 7200);
        assert_int_equal(at("now-1w"), NOW - 604800);
        assert_int_equal(at("now-4000000000s"), 0);
}

static void nonsense_is_refused(void **state) {
        static const char *const wrong[] = {"",          "tomorrow",   "2026-13-01", "2026-02-31",
                                            "2026-5",    "14:60",      "now-",       "now-h",
                                            "now-5",     "now-5x",     "now--5s",    "now+1h",
                                            "1 day ago", "2026-05-31 "};
        uint64_t ms = 7;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
                if (when_parse(wrong[i], NOW, &ms) != -EINVAL)
                        fail_msg("`%s' was taken for a time", wrong[i]);
        assert_int_equal(ms, 7);
}

/* In Berlin March 29, 2026 has 23 hours. */
static void days_have_the_length_that_they_have(void **state) {
        time_t begin = (time_t)at("2026-03-29");

        assert_int_equal(when_midnight(begin, 1) - begin, 23 * 3600);
        assert_int_equal(when_month(NOW, 0), at("2026-05-01"));
        assert_int_equal(when_month(NOW, 1), at("2026-06-01"));
        assert_int_equal(when_month((time_t)at("2026-12-31"), 1), at("2027-01-01"));
}

/* May 31, 2026 is a Sunday, and the first of January a Thursday. */
static void weeks_begin_on_monday(void **state) {
        assert_int_equal(when_week(NOW, 0), at("2026-05-25"));
        assert_int_equal(when_week(NOW, 1), at("2026-06-01"));
        assert_int_equal(when_week((time_t)at("2026-06-01"), 0), at("2026-06-01"));
        assert_int_equal(when_week((time_t)at("2026-06-01"), 1), at("2026-06-08"));
        assert_string_equal(when_show_week(NOW * 1000ull).text, "2026-W22");
        assert_string_equal(when_show_week(at("2026-06-01") * 1000ull).text, "2026-W23");
        assert_string_equal(when_show_week(at("2025-12-29") * 1000ull).text, "2026-W01");
}

static void times_are_shown_with_their_offset(void **state) {
        assert_string_equal(when_show(NOW * 1000ull).text, "2026-05-31 14:30:00");
        assert_string_equal(when_iso(NOW * 1000ull).text, "2026-05-31T14:30:00+02:00");
}

static int in_berlin(void **state) {
        setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
        tzset();
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(days_and_times_are_local),
                cmocka_unit_test(times_ago_have_units),
                cmocka_unit_test(nonsense_is_refused),
                cmocka_unit_test(days_have_the_length_that_they_have),
                cmocka_unit_test(weeks_begin_on_monday),
                cmocka_unit_test(times_are_shown_with_their_offset),
        };

        return cmocka_run_group_tests(tests, in_berlin, NULL);
}
