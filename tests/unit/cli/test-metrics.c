/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

#define N_USERS (METRICS_USERS_MAX + 3)

static char *written(const gpuq_status *status) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        assert_int_equal(metrics_write(stream, status), 0);
        assert_int_equal(fclose(stream), 0);
        return text;
}

static gpuq_status status_of(gpuq_user_status *users, size_t n_users) {
        return (gpuq_status){
                .daemon = "1.2.3",
                .driver = "cpu",
                .driver_version = "4.5",
                .state = "ready",
                .users = users,
                .n_users = n_users,
                .history_problem = "",
        };
}

static void names_cannot_break_a_line(void **state) {
        gpuq_user_status user = {.uid = 7, .user = "a\"b\\c\nd\x1b"};
        gpuq_status status = status_of(&user, 1);
        char *text = written(&status);

        assert_text_has(text, "gpuq_user_sessions{user=\"a\\\"b\\\\c d?\",uid=\"7\"} 0\n");
        free(text);
}

static size_t count(const char *text, const char *words) {
        size_t n = 0;

        for (const char *p = text; (p = strstr(p, words)); p++)
                n++;
        return n;
}

/* A user may be called like the sum, which has no uid. */
static void many_users_are_bounded_and_the_least_active_are_added_up(void **state) {
        gpuq_user_status users[N_USERS] = {};
        gpuq_status status = status_of(users, N_USERS);
        char *text;

        for (unsigned i = 0; i < N_USERS; i++)
                users[i] = (gpuq_user_status){.uid = 1000 + i,
                                              .user = "other",
                                              .gpu_seconds = i,
                                              .queued = 10,
                                              .done = 100,
                                              .device_bytes = 1ull << 40};
        text = written(&status);
        assert_int_equal(count(text, "\ngpuq_user_gpu_seconds_total{"), METRICS_USERS_MAX + 1);
        assert_text_has(text, "gpuq_user_gpu_seconds_total{user=\"other\",uid=\"1003\"} 3\n");
        assert_null(strstr(text, "uid=\"1002\""));
        assert_text_has(text, "gpuq_user_gpu_seconds_total{user=\"other\",uid=\"\"} 3\n");
        assert_text_has(text, "gpuq_user_jobs{user=\"other\",uid=\"\",state=\"waiting\"} 30\n");
        assert_text_has(text, "_ended_total{user=\"other\",uid=\"\",outcome=\"done\"} 300\n");
        assert_text_has(text,
                        "gpuq_user_device_buffer_bytes{user=\"other\",uid=\"\"} 3298534883328\n");
        free(text);
}

static void a_device_has_one_state_whatever_its_reason(void **state) {
        gpuq_device_status devices[] = {
                {.index = 0, .state = "ready", .xids = 3},
                {.index = 1, .state = "drained by x: y", .drained = "admin", .xids = -1},
                {.index = 2, .state = "failed: z", .drained = "itself", .xids = -1},
                {.index = 3, .state = "being checked", .xids = -1},
        };
        gpuq_worker_status workers[] = {{.device = 1, .memory = 5}, {.device = 1, .memory = 6}};
        gpuq_status status = status_of(NULL, 0);
        char *text;

        for (size_t i = 0; i < 4; i++)
                devices[i].name = devices[i].uuid = devices[i].pci = "";
        status.devices = devices;
        status.n_devices = 4;
        status.workers = workers;
        status.n_workers = 2;
        text = written(&status);
        assert_text_has(text, "gpuq_device_state{device=\"0\",gpuq_device_state=\"ready\"} 1\n");
        assert_text_has(text, "gpuq_device_state{device=\"1\",gpuq_device_state=\"drained\"} 1\n");
        assert_text_has(text, "gpuq_device_state{device=\"2\",gpuq_device_state=\"failed\"} 1\n");
        assert_text_has(text, "_state{device=\"3\",gpuq_device_state=\"unavailable\"} 1\n");
        assert_int_equal(count(text, "gpuq_device_state{"), 16);
        assert_text_has(text, "gpuq_device_worker_bytes{device=\"1\"} 11\n");
        assert_text_has(text, "gpuq_device_xids_total{device=\"0\"} 3\n");
        assert_int_equal(count(text, "gpuq_device_xids_total"), 1);
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_cannot_break_a_line),
                cmocka_unit_test(many_users_are_bounded_and_the_least_active_are_added_up),
                cmocka_unit_test(a_device_has_one_state_whatever_its_reason),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
