/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"
#include "table.h"

#define GIB (UINT64_C(1) << 30)

static gpuq_device_status devices[] = {
        {.index = 0,
         .name = "NVIDIA H100 80GB HBM3",
         .uuid = "GPU-0",
         .pci = "0000:01:00.0",
         .state = "ready",
         .memory_total = 80 * GIB,
         .memory_used = 16 * GIB,
         .memory_arenas = 3 * GIB,
         .running = 2,
         .queued = 7},
        {.index = 1,
         .name = "NVIDIA H100 80GB HBM3",
         .uuid = "GPU-1",
         .pci = "0000:02:00.0",
         .state = "drained by the administrator: it is to be replaced before the end of this week",
         .memory_total = 80 * GIB},
};

static gpuq_worker_status workers[] = {
        {.pid = 11, .uid = 1, .state = "busy", .running = 1},
        {.pid = 12, .uid = 1, .state = "busy", .running = 1, .express = 1},
        {.pid = 13, .uid = 2, .state = "idle"},
        {.pid = 14, .state = "spare"},
};

static gpuq_user_status users[] = {
        {.uid = 1,
         .user = "ada-of-the-long-name",
         .share = 0.75,
         .running = 2,
         .queued = 100000,
         .done = 123456789,
         .failed = 4321,
         .cancelled = 98,
         .arena_bytes = 5 * GIB,
         .device_bytes = 3 * GIB,
         .sms = ""},
        {.uid = 2, .user = "bob", .share = 0.25, .sms = ""},
};

static gpuq_user_limit limits[] = {
        {.uid = 1, .key = "jobs", .limit = 100000, .used = 99000, .left = 1000},
        {.uid = 1, .key = "arena_bytes", .limit = 8 * GIB, .used = 5 * GIB, .left = 2 * GIB},
        {.uid = 1, .key = "device_bytes", .limit = UINT64_MAX, .used = 1, .left = UINT64_MAX},
        {.uid = 1, .key = "gpu_seconds", .limit = 3600, .used = 600, .left = 3000},
        {.uid = 2, .key = "jobs", .limit = 54321, .used = 1, .left = 54320},
        {.uid = 2, .key = "modules", .limit = 98765, .left = 98765},
};

static gpuq_slurm_job_status slurm_jobs[] = {
        {.number = 4711, .uid = 1, .account = "physics", .weight = 3, .clients = 12},
        {.number = 4712, .uid = 2, .account = "", .weight = 1, .clients = 1},
};

static const gpuq_status whole = {
        .daemon = "1.2.3",
        .driver = "cuda",
        .driver_version = "12.4",
        .state = "ready",
        .history_problem =
                "no history is written: state_dir is empty in gpuqd.conf, which is a choice "
                "that an administrator can change at any time",
        .devices = devices,
        .n_devices = ARRAY_SIZE(devices),
        .workers = workers,
        .n_workers = ARRAY_SIZE(workers),
        .users = users,
        .n_users = ARRAY_SIZE(users),
        .limits = limits,
        .n_limits = ARRAY_SIZE(limits),
        .uid = 1,
        .slurm_jobs = slurm_jobs,
        .n_slurm_jobs = ARRAY_SIZE(slurm_jobs),
        .isolation = "",
};

static char *written(const gpuq_status *status, bool is_verbose, size_t width) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_int_equal(status_write(stream, status, is_verbose, width), 0);
        assert_int_equal(fclose(stream), 0);
        return text;
}

/* The fields of the line that begins with @first, with one blank between them. */
static void assert_line(const char *text, const char *first, const char *fields) {
        char line[256] = "";
        const char *at = strstr(text, first);
        size_t n = 0;

        assert_non_null(at);
        for (; *at && *at != '\n' && n < sizeof(line) - 1; at++)
                if (*at != ' ' || n == 0 || line[n - 1] != ' ')
                        line[n++] = *at;
        assert_string_equal(line, fields);
}

static void assert_fits(const char *text, size_t width) {
        while (*text) {
                size_t n = strcspn(text, "\n");

                if (n > width)
                        fail_msg("%zu columns: `%.*s'", n, (int)n, text);
                text += n + (text[n] == '\n');
        }
}

/* Each word of @part is a word of @text: none was broken. */
static void assert_words(const char *text, const char *part) {
        char *copy = strdup(part), *padded = NULL, *state = NULL, *flat;

        assert_true(asprintf(&padded, " %s ", text) > 0);
        for (flat = padded; *flat; flat++)
                *flat = *flat == '\n' ? ' ' : *flat;
        for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
                char *whole_word = NULL;

                assert_true(asprintf(&whole_word, " %s ", word) > 0);
                assert_text_has(padded, whole_word);
                free(whole_word);
        }
        free(padded);
        free(copy);
}

static void devices_show_memory_and_what_runs(void **state) {
        char *text = written(&whole, false, 0);

        assert_line(text, "  0 NVIDIA",
                    " 0 NVIDIA H100 80GB HBM3 ready 16.0 GiB 64.0 GiB 80.0 GiB 2 7 "
                    "ada-of-the-long-name");
        assert_line(text, "  1 NVIDIA", /* nothing was measured */
                    " 1 NVIDIA H100 80GB HBM3 drained by the administrator: it is to be replaced "
                    "before the end of this week - - 80.0 GiB 0 0 -");
        free(text);
}

static void users_show_share_jobs_and_memory(void **state) {
        char *text = written(&whole, false, 0);

        assert_line(text, "bob ", "bob 25% 0 0 0 0 0 0 B 0 B");
        assert_text_has(text, "123456789");
        assert_text_has(text, "5.00 GiB 3.00 GiB\n");
        free(text);
}

static void a_share_of_the_sms_has_a_column_if_a_user_has_one(void **state) {
        char *text = written(&whole, false, 0);

        assert_null(strstr(text, "SMS"));
        free(text);
        users[1].sms = "25%";
        text = written(&whole, false, 0);
        users[1].sms = "";
        assert_text_has(text, " SMS\n");
        assert_text_has(text, "5.00 GiB 3.00 GiB all\n");
        assert_line(text, "bob ", "bob 25% 0 0 0 0 0 0 B 0 B 25%");
        free(text);
}

static void limits_show_what_is_left_of_each(void **state) {
        char *text = written(&whole, false, 0);

        assert_text_has(text, "\nYour limits:\n");
        assert_line(text, "\njobs" + 1, "jobs 99000 100000 1000 unfinished jobs");
        assert_line(text, "arena_bytes",
                    "arena_bytes 5.00 GiB 8.00 GiB 2.00 GiB host memory in buffers");
        assert_line(text, "device_bytes",
                    "device_bytes 1 B unlimited unlimited device memory in buffers");
        assert_line(text, "gpu_seconds", "gpu_seconds 600 s 3600 s 3000 s GPU time in one window");
        assert_null(strstr(text, "54321"));
        free(text);
}

/* Nine for each user would hide those that matter. */
static void limits_that_others_do_not_use_are_not_shown(void **state) {
        char *text = written(&whole, true, 0);

        assert_non_null(strstr(text, "54321"));
        assert_null(strstr(text, "98765"));
        free(text);
}

static void counters_and_others_are_for_verbose(void **state) {
        static const char *const internals[] = {"QUANTA",
                                                "OVERRUNS",
                                                "ARENAS",
                                                "GRAPHS",
                                                "PID",
                                                "WEIGHT",
                                                "(express)",
                                                "54321",
                                                "4711 ada-of-the-long-name physics",
                                                "4712 bob                  -"};
        char *text = written(&whole, false, 0), *verbose = written(&whole, true, 0);

        for (size_t i = 0; i < ARRAY_SIZE(internals); i++) {
                assert_null(strstr(text, internals[i]));
                assert_text_has(verbose, internals[i]);
        }
        free(text);
        free(verbose);
}

static void everything_fits_80_columns_in_whole_words(void **state) {
        for (int is_verbose = 0; is_verbose < 2; is_verbose++) {
                char *text = written(&whole, is_verbose, 80);

                assert_fits(text, 80);
                assert_words(text, devices[1].state);
                assert_words(text, whole.history_problem);
                assert_words(text, "RUNNING WAITING SHARE HOST DEV LEFT FREE TOTAL");
                free(text);
        }
}

/* A byte that is no character of the locale is printed as four. */
static void escaped_bytes_count_as_they_are_printed(void **state) {
        static const TableColumn columns[] = {{"WHAT", .wrap = true}, {"MORE", .wrap = true}};
        static const char words[] =
                "tiles of 32 \xc3\x97 32 of the whole matrix, \xc3\x97 and \xc3\x97";
        Table *table = NULL;
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_int_equal(table_new(columns, 2, true, &table), 0);
        table_row(table, TABLE_PLAIN);
        table_cell(table, "%s", words);
        table_cell(table, "%s", words);
        assert_int_equal(table_print_to(table, stream, 50), 0);
        assert_int_equal(fclose(stream), 0);
        assert_fits(text, 50);
        table_free(table);
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(devices_show_memory_and_what_runs),
                cmocka_unit_test(users_show_share_jobs_and_memory),
                cmocka_unit_test(a_share_of_the_sms_has_a_column_if_a_user_has_one),
                cmocka_unit_test(limits_show_what_is_left_of_each),
                cmocka_unit_test(limits_that_others_do_not_use_are_not_shown),
                cmocka_unit_test(counters_and_others_are_for_verbose),
                cmocka_unit_test(everything_fits_80_columns_in_whole_words),
                cmocka_unit_test(escaped_bytes_count_as_they_are_printed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
