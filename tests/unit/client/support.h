/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TESTS_CLIENT_SUPPORT_H
#define GPUQ_TESTS_CLIENT_SUPPORT_H

/*
 * What every test of the client begins with: cmocka, the library, a fake daemon
 * and a connection to it as the test's state.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <gpuq.h>

#include "fake.h"

#include "util/macro.h"

typedef struct Session {
        Fake *fake;
        gpuq_client *client; /* NULL: freed by the test */
        gpuq_module *module;
} Session;

static inline void assert_ok(int r) {
        if (r < 0)
                fail_msg("%s: %s", gpuq_error_name(r), gpuq_error_text());
}

#define assert_text(part)                                                                          \
        do {                                                                                       \
                if (!strstr(gpuq_error_text(), part))                                              \
                        fail_msg("no \"%s\" in \"%s\"", part, gpuq_error_text());                  \
        } while (0)

static inline int session_open(void **state) {
        Session *session = calloc(1, sizeof(*session));

        session->fake = fake_new();
        *state = session;
        assert_ok(gpuq_connect(fake_path(session->fake), &session->client));
        assert_ok(gpuq_module_builtin(session->client, &session->module));
        return 0;
}

static inline int session_close(void **state) {
        Session *session = *state;

        gpuq_module_free(session->module);
        gpuq_client_free(session->client);
        fake_free(session->fake);
        free(session);
        return 0;
}

/* A job that doubles a word, with its buffers; the word is @value. */
static inline gpuq_job *session_job(Session *session, uint64_t value, gpuq_buffer **ret_from,
                                    gpuq_buffer **ret_to) {
        gpuq_config config = {.grid = {1}, .block = {1}};
        gpuq_buffer *from, *to;
        gpuq_job *job;

        assert_ok(gpuq_buffer_new(session->client, sizeof(uint64_t), &from));
        assert_ok(gpuq_buffer_new(session->client, sizeof(uint64_t), &to));
        assert_ok(gpuq_job_new(session->client, &job));
        *(uint64_t *)gpuq_buffer_data(from) = value;
        gpuq_arg args[] = {gpuq_in(from), gpuq_out(to), gpuq_u64(1)};
        assert_ok(gpuq_job_launch(job, session->module, "twice", &config, args, 3));
        *ret_from = from;
        *ret_to = to;
        return job;
}

static inline uint64_t buffer_word(gpuq_buffer *buffer) {
        return *(uint64_t *)gpuq_buffer_data(buffer);
}

#define session_test(f) cmocka_unit_test_setup_teardown(f, session_open, session_close)

#endif
