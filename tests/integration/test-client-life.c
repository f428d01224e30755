/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of handles that outlive what they belong to: a fork, a freed
 * client, a daemon that ends.
 */
#include "test-client.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_anew(void) {
        gpuq_client *q = NULL;
        gpuq_module *m = NULL;
        gpuq_buffer *x, *y = NULL;
        gpuq_job *job;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_module_builtin(q, &m));
        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));
        job = scale_job(q, m, 7, x, y);
        DO(gpuq_run(job));
        CHECK(is_scaled(y, 7));
        drop(job, y);
        gpuq_buffer_free(x);
        gpuq_module_free(m);
        gpuq_client_free(q);
}

static void in_the_child(gpuq_client *q, gpuq_module *m, gpuq_buffer *x, gpuq_buffer *y,
                         gpuq_job *job) {
        gpuq_buffer *other = NULL;
        gpuq_job *another = NULL;

        CHECK(gpuq_client_fd(q) == GPUQ_E_FORKED);
        CHECK(gpuq_dispatch(q, 0) == GPUQ_E_FORKED);
        CHECK(gpuq_buffer_new(q, 10, &other) == GPUQ_E_FORKED && !other);
        CHECK(gpuq_job_new(q, &another) == GPUQ_E_FORKED && !another);
        CHECK(gpuq_submit(job) == GPUQ_E_FORKED);
        CHECK(strstr(gpuq_error_text(), "fork"));
        drop(job, y);
        gpuq_buffer_free(x);
        gpuq_module_free(m);
        gpuq_client_free(q);
        run_anew();
        _exit(0); /* not exit(): what the inherited job holds stays, which is no leak */
}

void scenario_null_handles(void) {
        gpuq_kernel_info info;
        uint64_t address;
        size_t n;

        CHECK(gpuq_buffer_size(NULL) == 0 && !gpuq_buffer_data(NULL));
        CHECK(gpuq_buffer_device(NULL) == GPUQ_E_INVALID);
        CHECK(gpuq_buffer_address(NULL, &address) == GPUQ_E_INVALID);
        CHECK(gpuq_module_n_kernels(NULL) == 0 && !gpuq_module_has_variables(NULL));
        CHECK(strcmp(gpuq_module_log(NULL), "") == 0);
        CHECK(gpuq_module_kernel(NULL, 0, &info) == GPUQ_E_INVALID);
        CHECK(gpuq_module_find(NULL, "k", &n) == GPUQ_E_INVALID);
        CHECK(gpuq_module_variable_size(NULL, "v", &n) == GPUQ_E_INVALID);
        CHECK(strstr(gpuq_error_text(), "gpuq_module_variable_size(): the module"));
        CHECK(gpuq_client_session(NULL) == 0 && gpuq_client_devices(NULL) == 0);
        CHECK(gpuq_job_id(NULL) == 0);
}

void scenario_fork(void) {
        gpuq_client *q = NULL;
        gpuq_module *m = NULL;
        gpuq_buffer *x, *y = NULL;
        gpuq_job *job;
        pid_t child;
        int status;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_module_builtin(q, &m));
        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));
        job = scale_job(q, m, 2, x, y);

        child = fork();
        CHECK(child >= 0);
        if (child == 0)
                in_the_child(q, m, x, y, job);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status == 0);

        DO(gpuq_run(job)); /* the parent's session is as it was */
        CHECK(is_scaled(y, 2));
        drop(job, y);
        gpuq_buffer_free(x);
        gpuq_module_free(m);
        gpuq_client_free(q);
}

void scenario_free_client_first(void) {
        gpuq_client *q = NULL;
        gpuq_module *m = NULL;
        gpuq_buffer *x, *y = NULL, *slice = NULL;
        gpuq_job *job;

        DO(gpuq_connect(NULL, &q));
        DO(gpuq_module_builtin(q, &m));
        x = filled(q, 1);
        DO(gpuq_buffer_new(q, N * sizeof(double), &y));
        job = scale_job(q, m, 2, x, y);
        gpuq_client_free(q);

        CHECK(gpuq_submit(job) == GPUQ_E_CLOSED);
        CHECK(gpuq_buffer_slice(x, 0, 8, &slice) == 0 ||
              gpuq_buffer_slice(x, 0, 8, &slice) == GPUQ_E_CLOSED);
        gpuq_buffer_free(slice);
        gpuq_job_free(job);
        gpuq_buffer_free(y);
        gpuq_buffer_free(x);
        gpuq_module_free(m);

        gpuq_client_free(NULL);
        gpuq_job_free(NULL);
        gpuq_buffer_free(NULL);
        gpuq_module_free(NULL);
}

/* Says when it waits; the test then ends the daemon. */
void scenario_daemon_ends(void) {
        gpuq_client *q = NULL;
        gpuq_buffer *x = NULL;
        int r;

        DO(gpuq_connect(NULL, &q));
        puts("waiting");
        fflush(stdout);
        do
                r = gpuq_dispatch(q, -1);
        while (r >= 0);
        CHECK(r == GPUQ_E_CLOSED || r == GPUQ_E_SHUTDOWN);
        CHECK(gpuq_error_text()[0]);
        CHECK(gpuq_buffer_new(q, 1 << 20, &x) < 0);
        gpuq_client_free(q);
}

void scenario_no_daemon(void) {
        gpuq_client *q = NULL;

        CHECK(gpuq_connect("/nowhere/at/all.sock", &q) == GPUQ_E_CONNECT);
        CHECK(!q && strstr(gpuq_error_text(), "/nowhere/at/all.sock"));
        CHECK(!strcmp(gpuq_error_name(GPUQ_E_CONNECT), "GPUQ_E_CONNECT"));
}
