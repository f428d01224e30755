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
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/log.h"
#include "util/repeat.h"

static char captured[4096];

#define FIELDS "GPUQ_JOB=1.2"

/* What one call of log_full() writes, or of log_flush() if there is no text. */
static const char *capture_full(int level, const char *fields, const char *text) {
        int saved = dup(STDERR_FILENO), fds[2];
        ssize_t n;

        assert_return_code(pipe(fds), errno);
        assert_return_code(dup2(fds[1], STDERR_FILENO), errno);
        close(fds[1]);
        if (text)
                log_full(level, fields, "%s", text);
        else
                log_flush();
        assert_return_code(dup2(saved, STDERR_FILENO), errno);
        close(saved);

        n = read(fds[0], captured, sizeof(captured) - 1);
        assert_true(n >= 0);
        captured[n] = '\0';
        close(fds[0]);
        return captured;
}

static const char *capture(const char *fields, const char *text) {
        return capture_full(LOG_INFO, fields, text);
}

static void line_has_the_name_in_front(void **state) {
        log_open("gpuqd", LOG_INFO);
        assert_string_equal(capture(FIELDS, "hello"), "gpuqd: hello\n");
}

static void level_decides_what_is_told(void **state) {
        log_open("gpuqd", LOG_WARNING);
        assert_string_equal(capture(FIELDS, "hello"), "");
        assert_string_equal(capture_full(LOG_ERR, FIELDS, "hello"), "gpuqd: hello\n");
}

static void message_stays_one_line(void **state) {
        log_open("gpuqd", LOG_INFO);
        assert_string_equal(capture(FIELDS, "a\nb\033[1m"), "gpuqd: a b?[1m\n");
}

static void long_message_is_cut(void **state) {
        char text[5000];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        log_open("gpuqd", LOG_INFO);
        assert_in_range(strlen(capture(FIELDS, text)), 1000, 2100);
        assert_int_equal(captured[strlen(captured) - 1], '\n');
}

static void errno_is_left_alone(void **state) {
        log_open("gpuqd", LOG_INFO);
        errno = EXDEV;
        log_info("hello");
        assert_int_equal(errno, EXDEV);
}

static void write_three_times(const char *text) {
        char line[64];

        snprintf(line, sizeof(line), "gpuqd: %s\n", text);
        for (unsigned i = 0; i < 3; i++)
                assert_string_equal(capture(NULL, text), line);
}

static void line_that_comes_again_and_again_is_counted(void **state) {
        log_open("gpuqd", LOG_INFO);
        write_three_times("same");
        assert_string_equal(capture(NULL, "same"), "");
        assert_string_equal(capture(NULL, "same"), "");
        assert_string_equal(capture(NULL, "other"),
                            "gpuqd: repeated 2 more times: same\ngpuqd: other\n");
        assert_string_equal(capture(FIELDS, "other"), "gpuqd: other\n");
}

static void line_with_fields_is_always_written(void **state) {
        log_open("gpuqd", LOG_INFO);
        for (unsigned i = 0; i < 5; i++)
                assert_string_equal(capture(FIELDS, "same"), "gpuqd: same\n");
}

static void count_is_written_at_the_end(void **state) {
        log_open("gpuqd", LOG_INFO);
        write_three_times("end");
        assert_string_equal(capture(NULL, "end"), "");
        assert_string_equal(capture(NULL, NULL), "gpuqd: repeated 1 more time: end\n");
        assert_string_equal(capture(NULL, NULL), "");
        write_three_times("end");
}

static void child_leaves_the_count_to_its_parent(void **state) {
        int status;
        pid_t pid;

        log_open("gpuqd", LOG_INFO);
        write_three_times("parent");
        assert_string_equal(capture(NULL, "parent"), "");
        pid = fork();
        if (pid == 0)
                _exit(strcmp(capture(NULL, "child"), "gpuqd: child\n") != 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_string_equal(capture(NULL, NULL), "gpuqd: repeated 1 more time: parent\n");
}

static void repetition_ends_with_its_time_its_text_or_its_level(void **state) {
        Repeat repeat = {}, before;

        for (unsigned i = 0; i < REPEAT_WRITTEN; i++)
                assert_true(repeat_take(&repeat, LOG_ERR, "a", 5 + i, &before));
        assert_false(repeat_take(&repeat, LOG_ERR, "a", 9, &before));
        assert_false(repeat_take(&repeat, LOG_ERR, "a", 4 + REPEAT_NS, &before));
        assert_true(repeat_take(&repeat, LOG_ERR, "a", 5 + REPEAT_NS, &before));
        assert_int_equal(before.n_counted, 2);
        assert_int_equal(before.level, LOG_ERR);
        assert_string_equal(before.text, "a");
        assert_true(repeat_take(&repeat, LOG_INFO, "a", 5 + REPEAT_NS, &before));
        assert_int_equal(before.n_counted, 0);
        assert_true(repeat_take(&repeat, LOG_INFO, "b", 7 + REPEAT_NS, &before));
        repeat_end(&repeat, &before);
        assert_int_equal(before.n_counted, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(line_has_the_name_in_front),
                cmocka_unit_test(level_decides_what_is_told),
                cmocka_unit_test(message_stays_one_line),
                cmocka_unit_test(long_message_is_cut),
                cmocka_unit_test(errno_is_left_alone),
                cmocka_unit_test(line_that_comes_again_and_again_is_counted),
                cmocka_unit_test(line_with_fields_is_always_written),
                cmocka_unit_test(child_leaves_the_count_to_its_parent),
                cmocka_unit_test(count_is_written_at_the_end),
                cmocka_unit_test(repetition_ends_with_its_time_its_text_or_its_level),
        };

        unsetenv("JOURNAL_STREAM");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
