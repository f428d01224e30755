/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log: what reaches a stderr that is not the journal.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"

static char captured[4096];

/* What one call of log_full() writes. */
static const char *capture(int level, const char *text) {
        int saved = dup(STDERR_FILENO), fds[2];
        ssize_t n;

        assert_return_code(pipe(fds), errno);
        assert_return_code(dup2(fds[1], STDERR_FILENO), errno);
        close(fds[1]);
        log_full(level, "GPUQ_JOB=1.2", "%s", text);
        assert_return_code(dup2(saved, STDERR_FILENO), errno);
        close(saved);

        n = read(fds[0], captured, sizeof(captured) - 1);
        assert_true(n >= 0);
        captured[n] = '\0';
        close(fds[0]);
        return captured;
}

static void line_has_the_name_in_front(void **state) {
        log_open("gpuqd", LOG_INFO);
        assert_string_equal(capture(LOG_INFO, "hello"), "gpuqd: hello\n");
}

static void level_decides_what_is_told(void **state) {
        log_open("gpuqd", LOG_WARNING);
        assert_string_equal(capture(LOG_INFO, "hello"), "");
        assert_string_equal(capture(LOG_ERR, "hello"), "gpuqd: hello\n");
}

static void message_stays_one_line(void **state) {
        log_open("gpuqd", LOG_INFO);
        assert_string_equal(capture(LOG_INFO, "a\nb\033[1m"), "gpuqd: a b?[1m\n");
}

static void long_message_is_cut(void **state) {
        char text[5000];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        log_open("gpuqd", LOG_INFO);
        assert_in_range(strlen(capture(LOG_INFO, text)), 1000, 2100);
        assert_int_equal(captured[strlen(captured) - 1], '\n');
}

static void errno_is_left_alone(void **state) {
        log_open("gpuqd", LOG_INFO);
        errno = EXDEV;
        log_info("hello");
        assert_int_equal(errno, EXDEV);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(line_has_the_name_in_front),
                cmocka_unit_test(level_decides_what_is_told),
                cmocka_unit_test(message_stays_one_line),
                cmocka_unit_test(long_message_is_cut),
                cmocka_unit_test(errno_is_left_alone),
        };

        unsetenv("JOURNAL_STREAM");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
