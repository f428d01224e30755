/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chatter: lines of a worker come out one by one, few of them, and their writer never waits.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/chatter.h"

typedef struct Heard {
        char text[4096];
        unsigned n;
} Heard;

static void on_line(const char *line, void *userdata) {
        Heard *heard = userdata;

        heard->n++;
        if (strlen(heard->text) + strlen(line) + 2 < sizeof(heard->text))
                strcat(strcat(heard->text, line), "|");
}

static void say(int fd, const char *text) {
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void lines_come_out_one_by_one(void **state) {
        Heard heard = {};
        Chatter chatter;
        int end;

        assert_int_equal(chatter_init(&chatter, &end), 0);
        say(end, "first\n\nsecond\nthi");
        assert_false(chatter_read(&chatter, 1000, on_line, &heard));
        assert_string_equal(heard.text, "first|second|");
        say(end, "rd\nlast words");
        close(end);
        assert_false(chatter_read(&chatter, 1000, on_line, &heard));
        assert_int_equal(chatter.fd, -1); /* nobody is woken for it again */
        chatter_end(&chatter, 1000, on_line, &heard);
        assert_string_equal(heard.text, "first|second|third|last words|");
        assert_int_equal(chatter.fd, -1);
}

static void a_long_line_comes_in_pieces(void **state) {
        char text[3 * CHATTER_LINE_MAX + 1];
        Heard heard = {};
        Chatter chatter;
        int end;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(chatter_init(&chatter, &end), 0);
        say(end, text);
        chatter_read(&chatter, 1000, on_line, &heard);
        assert_int_equal(heard.n, 3);
        close(end);
        chatter_finish(&chatter);
}

static void who_writes_too_much_is_heard_now_and_then_and_never_waits(void **state) {
        Heard heard = {};
        Chatter chatter;
        unsigned n_lost = 0;
        int end;

        assert_int_equal(chatter_init(&chatter, &end), 0);
        for (unsigned i = 0; i < 100000; i++)
                n_lost += write(end, "flood\n", 6) != 6;
        assert_true(n_lost > 0);
        assert_int_equal(errno, EAGAIN);

        assert_true(chatter_read(&chatter, 1000, on_line, &heard));
        assert_int_equal(heard.n, CHATTER_LINES_MAX);
        assert_true(chatter_read(&chatter, 1000, on_line, &heard));
        assert_int_equal(heard.n, CHATTER_LINES_MAX);
        assert_true(chatter_free_at(&chatter) > 1000);
        assert_true(chatter_read(&chatter, 2000, on_line, &heard));
        assert_int_equal(heard.n, CHATTER_LINES_MAX + CHATTER_PER_S);
        close(end);
        chatter_end(&chatter, 2000, on_line, &heard);
        assert_int_equal(heard.n, CHATTER_LINES_MAX + CHATTER_PER_S);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_come_out_one_by_one),
                cmocka_unit_test(a_long_line_comes_in_pieces),
                cmocka_unit_test(who_writes_too_much_is_heard_now_and_then_and_never_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
