/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

static gpuq_status status_of(gpuq_user_status *users, size_t n_users, uint64_t uptime_us) {
        return (gpuq_status){
                .daemon = "1.2.3",
                .driver = "cpu",
                .driver_version = "4.5",
                .state = "ready",
                .users = users,
                .n_users = n_users,
                .uptime_us = uptime_us,
        };
}

static char *written(const TopView *view) {
        static const gpuq_queue empty;
        static const NvmlReading unread[4] = {[0 ... 3] = {-1, -1, -1, -1}};
        TopView whole = *view;
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!whole.queue)
                whole.queue = &empty;
        if (!whole.readings)
                whole.readings = unread;
        assert_int_equal(top_write(stream, &whole), 0);
        assert_int_equal(fclose(stream), 0);
        return text;
}

static void assert_order(const char *text, const char *first, const char *second) {
        const char *a = strstr(text, first), *b = strstr(text, second);

        if (!a || !b || a > b)
                fail_msg("`%s' is not before `%s' in `%s'", first, second, text);
}

static void rates_are_of_the_time_between_two_statuses(void **state) {
        gpuq_user_status then[] = {{.uid = 1, .user = "ada", .done = 100, .failed = 10}};
        gpuq_user_status now[] = {{.uid = 1, .user = "ada", .done = 500, .failed = 20},
                                  {.uid = 2, .user = "bob", .cancelled = 90}};
        gpuq_status before = status_of(then, 1, 1000000), after = status_of(now, 2, 3000000);
        TopView view = {.status = &after, .uid = TOP_ALL};
        char *text;

        text = written(&view);
        assert_text_has(text, "0 running, - jobs/s\n");
        free(text);

        view.before = &before;
        text = written(&view);
        assert_text_has(text, "0 running, 250 jobs/s\n");
        assert_text_has(text, " 205 ");
        assert_text_has(text, " 45 ");
        free(text);

        before.uptime_us = 4000000; /* gpuqd was restarted */
        text = written(&view);
        assert_text_has(text, "0 running, - jobs/s\n");
        free(text);
}

/* gpuqd forgets a user that was idle for long. */
static void a_count_that_begins_anew_is_no_rate(void **state) {
        gpuq_user_status then = {.uid = 1, .user = "ada", .done = 100};
        gpuq_user_status now = {.uid = 1, .user = "ada", .done = 1};
        gpuq_status before = status_of(&then, 1, 1000000), after = status_of(&now, 1, 2000000);
        TopView view = {.status = &after, .before = &before, .uid = TOP_ALL};
        char *text = written(&view);

        assert_text_has(text, "0 running, 0.0 jobs/s\n");
        free(text);
}

static void devices_have_what_nvml_reads_else_what_gpuqd_knows(void **state) {
        static const NvmlReading readings[] = {
                {.utilization = 87,
                 .temperature = 61,
                 .power = 345,
                 .power_max = 700,
                 .memory_used = 30ull << 30,
                 .memory_total = 80ull << 30},
                {-1, -1, -1, -1},
        };
        gpuq_device_status devices[] = {
                {.name = "one", .state = "ready", .memory_total = 80ull << 30},
                {.index = 1,
                 .name = "two",
                 .state = "ready",
                 .memory_total = 80ull << 30,
                 .memory_used = 5ull << 30},
        };
        gpuq_status status = status_of(NULL, 0, 1);
        TopView view = {.status = &status, .readings = readings, .uid = TOP_ALL};
        char *text;

        status.devices = devices;
        status.n_devices = ARRAY_SIZE(devices);
        text = written(&view);
        assert_text_has(text, "0 one  ready  87% 30.0 GiB 50.0 GiB 61 C 345/700 W ");
        assert_text_has(text, "1 two  ready    - 5.00 GiB 75.0 GiB    -         - ");
        free(text);
}

static void users_are_sorted_and_filtered(void **state) {
        gpuq_user_status users[] = {{.uid = 1,
                                     .user = "ada",
                                     .share = 0.2,
                                     .queued = 5,
                                     .has_waited = true,
                                     .waited = {.p99_us = 10}},
                                    {.uid = 2, .user = "bob", .share = 0.5, .queued = 1},
                                    {.uid = 3, .user = "cy", .share = 0.3, .running = 9}};
        gpuq_status status = status_of(users, 3, 1);
        TopView view = {.status = &status, .uid = TOP_ALL, .sort = TOP_SORT_SHARE};
        char *text = written(&view);

        assert_order(text, "\nbob", "\ncy");
        assert_order(text, "\ncy", "\nada");
        free(text);
        view.sort = TOP_SORT_JOBS;
        text = written(&view);
        assert_order(text, "\ncy", "\nada");
        assert_order(text, "\nada", "\nbob");
        free(text);
        view.sort = TOP_SORT_WAIT;
        text = written(&view);
        assert_order(text, "\nada", "\ncy");
        assert_order(text, "\ncy", "\nbob");
        free(text);
        view.sort = TOP_SORT_NAME;
        text = written(&view);
        assert_order(text, "\nada", "\nbob");
        free(text);
        view.uid = 2;
        text = written(&view);
        assert_text_has(text, "\nbob");
        assert_null(strstr(text, "\nada"));
        free(text);
}

static void running_jobs_come_first_and_users_in_their_order(void **state) {
        gpuq_user_status users[] = {{.uid = 1, .user = "ada"},
                                    {.uid = 2, .user = "bob", .share = 1}};
        gpuq_queue_entry entries[] = {
                {.uid = 1,
                 .user = "ada",
                 .label = "a1",
                 .kernel = "",
                 .reason = "late",
                 .state = "waiting"},
                {.uid = 1,
                 .user = "ada",
                 .label = "a2",
                 .kernel = "",
                 .reason = "",
                 .state = "running"},
                {.uid = 2,
                 .user = "bob",
                 .label = "",
                 .kernel = "b1",
                 .reason = "soon",
                 .state = "waiting"},
                {.uid = 2,
                 .user = "bob",
                 .label = "b2",
                 .kernel = "",
                 .reason = "soon",
                 .state = "waiting"},
        };
        gpuq_status status = status_of(users, 2, 1);
        gpuq_queue queue = {.entries = entries, .n_entries = 4};
        TopView view = {.status = &status, .queue = &queue, .uid = TOP_ALL};
        char *text = written(&view);

        assert_order(text, "a2", "b1");
        assert_order(text, "b1", "b2");
        assert_order(text, "b2", "a1");
        assert_text_has(text, "waiting: late\n");
        free(text);

        view.rows = 3;
        text = written(&view);
        assert_text_has(text, "b2");
        assert_null(strstr(text, "a1"));
        free(text);
}

static void what_users_chose_cannot_speak_to_the_terminal(void **state) {
        gpuq_user_status user = {.uid = 1, .user = "a\x1b[2J"};
        gpuq_queue_entry entry = {.uid = 1,
                                  .user = "a\x1b[2J",
                                  .label = "\x1b]0;x\x07\n",
                                  .kernel = "\x9b",
                                  .reason = "\r",
                                  .state = "waiting"};
        gpuq_queue_module module = {.uid = 1, .user = "\x1b", .name = "\x1b", .reason = "\x1b"};
        gpuq_device_status device = {.name = "\x1b[m", .state = "\x1b[m"};
        gpuq_status status = status_of(&user, 1, 1);
        gpuq_queue queue = {.entries = &entry, .n_entries = 1, .modules = &module, .n_modules = 1};
        TopView view = {.status = &status, .queue = &queue, .uid = TOP_ALL, .columns = 80};
        char *text;

        status.devices = &device;
        status.n_devices = 1;
        status.state = status.driver = "\x1b[31m";
        text = written(&view);
        for (const char *p = text; *p; p++)
                assert_true(*p == '\n' || (*p >= ' ' && *p <= '~'));
        free(text);
}

static void waits_and_the_limit_that_is_reached_first(void **state) {
        gpuq_user_status users[] = {
                {.uid = 1, .user = "ada", .has_waited = true, .waited = {704, 2000, 2500}},
                {.uid = 2, .user = "bob"},
        };
        gpuq_user_limit limits[] = {
                {.uid = 1, .key = "jobs", .limit = 100, .used = 30, .left = 70},
                {.uid = 1, .key = "arena_bytes", .limit = 1000, .used = 100, .left = 100},
                {.uid = 1, .key = "modules", .limit = UINT64_MAX, .used = 9, .left = UINT64_MAX},
                {.uid = 2, .key = "jobs", .limit = 100, .left = 100},
                {.uid = 2, .key = "detached_jobs"},
        };
        gpuq_status status = status_of(users, 2, 1);
        TopView view = {.status = &status, .uid = TOP_ALL};
        char *text;

        status.limits = limits;
        status.n_limits = ARRAY_SIZE(limits);
        text = written(&view);
        assert_text_has(text, "   704 us  2.50 ms arena_bytes 50% ");
        assert_text_has(text, "        -        - -  ");
        assert_null(strstr(text, "ALLOWED"));
        free(text);

        view.uid = 1;
        text = written(&view);
        assert_order(text, "\narena_bytes 100 B", "\njobs ");
        assert_order(text, "\njobs ", "\nmodules ");
        assert_text_has(text, "host memory in buffers\n");
        free(text);
}

/* 80 columns are enough for what an administrator looks for, with the longest key. */
static void users_fit_eighty_columns(void **state) {
        gpuq_user_status user = {.uid = 1,
                                 .user = "ada-of-the-long-name",
                                 .share = 1,
                                 .weight = 100,
                                 .queued = 100000,
                                 .running = 1024,
                                 .done = 123456789,
                                 .has_waited = true,
                                 .waited = {1234567, 1234567, 1234567}};
        gpuq_user_limit limit = {
                .uid = 1, .key = "detached_bytes", .limit = 1, .used = 1, .left = 0};
        gpuq_status status = status_of(&user, 1, 1);
        TopView view = {.status = &status, .uid = TOP_ALL, .columns = 80};
        char *text;

        status.limits = &limit;
        status.n_limits = 1;
        text = written(&view);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
                assert_true(strcspn(line, "\n") <= 80);
        assert_text_has(text, "detached_bytes 100%");
        assert_text_has(text, "1.23 s");
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rates_are_of_the_time_between_two_statuses),
                cmocka_unit_test(a_count_that_begins_anew_is_no_rate),
                cmocka_unit_test(devices_have_what_nvml_reads_else_what_gpuqd_knows),
                cmocka_unit_test(users_are_sorted_and_filtered),
                cmocka_unit_test(running_jobs_come_first_and_users_in_their_order),
                cmocka_unit_test(waits_and_the_limit_that_is_reached_first),
                cmocka_unit_test(users_fit_eighty_columns),
                cmocka_unit_test(what_users_chose_cannot_speak_to_the_terminal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
