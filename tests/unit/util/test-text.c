/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/text.h"

static void put(char text[static 8], uint32_t c) {
        size_t n = 0;

        if (c < 0x80) {
                text[n++] = (char)c;
        } else if (c < 0x800) {
                text[n++] = (char)(0xc0 | c >> 6);
        } else if (c < 0x10000) {
                text[n++] = (char)(0xe0 | c >> 12);
                text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        } else {
                text[n++] = (char)(0xf0 | c >> 18);
                text[n++] = (char)(0x80 | (c >> 12 & 0x3f));
                text[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        }
        if (c >= 0x80)
                text[n++] = (char)(0x80 | (c & 0x3f));
        text[n++] = 'x';
        text[n] = '\0';
}

/* Written out once more, so that a slip in one of the two shows. */
static bool is_bad(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
               (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f) || c == 0xfeff ||
               (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f) ||
               (c >= 0xd800 && c <= 0xdfff);
}

static void each_character_of_unicode_passes_or_is_replaced(void **state) {
        char text[8], cleaned[8];

        for (uint32_t c = 1; c <= 0x10ffff; ++c) {
                bool is_space = c == '\n' || c == '\t';

                put(text, c);
                strcpy(cleaned, text);
                assert_int_equal(text_is_clean(text, 8), !is_bad(c));
                text_clean(cleaned);
                if (!is_bad(c) || is_space)
                        assert_string_equal(cleaned, text);
                else
                        assert_string_equal(cleaned + strlen(cleaned) - 2, "?x");
                text_clean_line(text);
                assert_true(text_is_clean(text, 8));
        }
}

static void what_is_no_utf8_is_replaced_byte_by_byte(void **state) {
        const char *const bad[] = {"\x80", "\xc0\xaf",     "\xe0\x80\xaf",     "\xf5\x80\x80\x80",
                                   "\xff", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80"};
        char text[8];

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); ++i) {
                strcpy(text, bad[i]);
                assert_false(text_is_clean(text, 8));
                text_clean(text);
                assert_int_equal(strspn(text, "?"), strlen(bad[i]));
        }
}

static void lines_stay_where_they_may(void **state) {
        char many[] = "a\n\tb\r\033[31mc", one[] = "a\n\tb\xe2\x80\xae"
                                                   "c";

        assert_string_equal(text_clean(many), "a\n\tb??[31mc");
        assert_string_equal(text_clean_line(one), "a  b?c");
        assert_false(text_is_clean("a\nb", 8));
        assert_false(text_is_clean("abc", 2));
        assert_true(text_is_clean("gr\xc3\xbc\xc3\x9f", 8));
        assert_true(text_is_clean("", 0));
}

static void cut_text_ends_with_a_whole_character(void **state) {
        assert_int_equal(text_cut("abc", 3), 3);
        assert_int_equal(text_cut("abcd", 3), 3);
        assert_int_equal(text_cut("ab", 3), 2);
        assert_int_equal(text_cut("a\u00e9", 2), 1);
        assert_int_equal(text_cut("a\u00e9", 3), 3);
        assert_int_equal(text_cut("\u20ac\u20ac", 5), 3);
        assert_int_equal(text_cut("\u20ac", 1), 0);
        assert_int_equal(text_cut("\x80\x80\x80\x80\x80\x80", 5), 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cut_text_ends_with_a_whole_character),
                cmocka_unit_test(each_character_of_unicode_passes_or_is_replaced),
                cmocka_unit_test(what_is_no_utf8_is_replaced_byte_by_byte),
                cmocka_unit_test(lines_stay_where_they_may),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
