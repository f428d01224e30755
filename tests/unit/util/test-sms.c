/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a device's SMs: their texts, and how many SMs they are.
 */
#include "util/sms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "util/macro.h"

static Sms sms_of(const char *text) {
        Sms sms;

        if (!sms_parse(text, &sms))
                fail_msg("%s is not a share", text);
        assert_true(sms_are_valid(sms));
        return sms;
}

static void a_share_is_read_and_written(void **state) {
        static const struct {
                const char *text, *written;
        } shares[] = {
                {"all", "all"}, {"100%", "all"}, {"1%", "1%"},       {"25%", "25%"},
                {"99%", "99%"}, {"1", "1"},      {"65535", "65535"}, {"040", "40"},
        };
        char text[SMS_TEXT];

        for (size_t i = 0; i < ARRAY_SIZE(shares); ++i)
                assert_string_equal(sms_text(sms_of(shares[i].text), text), shares[i].written);
        assert_true(sms_are_all(sms_of("100%")));
        assert_false(sms_are_equal(sms_of("25%"), sms_of("25")));
}

static void what_is_no_share_is_refused(void **state) {
        static const char *const texts[] = {
                "",    "0",    "0%",    "101%", "65536",  "-1",
                "25 ", "25%%", "2.5%",  "some", "25% of", "99999999999999999999999",
                "% 5", " 25",  "all 4",
        };
        Sms sms = {.n = 7, .is_percent = true};

        for (size_t i = 0; i < ARRAY_SIZE(texts); ++i)
                if (sms_parse(texts[i], &sms))
                        fail_msg("\"%s\" was taken for a share", texts[i]);
        assert_true(sms.n == 7 && sms.is_percent);
}

static void what_no_text_gives_is_not_valid(void **state) {
        assert_true(sms_are_valid((Sms){}));
        assert_false(sms_are_valid((Sms){.n = 0, .is_percent = true}));
        assert_false(sms_are_valid((Sms){.n = 100, .is_percent = true}));
        assert_false(sms_are_valid((Sms){.n = SMS_MAX + 1}));
}

/* An H100 has 132 SMs, and its parts are multiples of 8. */
static void a_share_is_rounded_up_to_what_the_device_allows(void **state) {
        assert_int_equal(sms_count(sms_of("25%"), 132, 8, 8), 40);
        assert_int_equal(sms_count(sms_of("50%"), 132, 8, 8), 72);
        assert_int_equal(sms_count(sms_of("1%"), 132, 8, 8), 8);
        assert_int_equal(sms_count(sms_of("1"), 132, 8, 8), 8);
        assert_int_equal(sms_count(sms_of("32"), 132, 8, 8), 32);
        assert_int_equal(sms_count(sms_of("33"), 132, 8, 8), 40);
        assert_int_equal(sms_count(sms_of("1"), 108, 4, 2), 4);
        assert_int_equal(sms_count(sms_of("5"), 108, 4, 2), 6);
        assert_int_equal(sms_count(sms_of("25%"), 8, 1, 1), 2);
}

static void a_share_of_which_no_part_is_as_large_is_the_whole_device(void **state) {
        assert_int_equal(sms_count(sms_of("all"), 132, 8, 8), 132);
        assert_int_equal(sms_count(sms_of("99%"), 132, 8, 8), 132);
        assert_int_equal(sms_count(sms_of("500"), 132, 8, 8), 132);
        assert_int_equal(sms_count(sms_of("25%"), 1, 2, 2), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_share_is_read_and_written),
                cmocka_unit_test(what_is_no_share_is_refused),
                cmocka_unit_test(what_no_text_gives_is_not_valid),
                cmocka_unit_test(a_share_is_rounded_up_to_what_the_device_allows),
                cmocka_unit_test(a_share_of_which_no_part_is_as_large_is_the_whole_device),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
