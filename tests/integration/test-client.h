/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_CLIENT_H
#define GPUQ_TEST_CLIENT_H

/*
 * A program that uses libgpuq as anybody would, one function a scenario. The
 * first check that does not hold ends it with the line and the library's text.
 */

#include <stdio.h>
#include <stdlib.h>

#include <gpuq.h>

#define CHECK(condition)                                                                           \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__,     \
                                __LINE__, #condition, gpuq_error_text());                          \
                        exit(1);                                                                   \
                }                                                                                  \
        } while (0)
/* A call that must succeed. */
#define DO(call) CHECK((call) >= 0)

#define N 1000

/* A buffer of N doubles 0, 1, 2, … times factor. */
gpuq_buffer *filled(gpuq_client *client, double factor);
/* A job that writes factor * x to y, on the built-in kernels. */
gpuq_job *scale_job(gpuq_client *client, gpuq_module *builtin, double factor, gpuq_buffer *x,
                    gpuq_buffer *y);
/* Frees the job's memory and its result's buffer. */
void drop(gpuq_job *job, gpuq_buffer *y);
/* Whether y is factor * (0, 1, 2, …). */
int is_scaled(gpuq_buffer *y, double factor);

/* test-client-async.c */
void scenario_loop(void);
void scenario_loop_again(void);
void scenario_threads(void);
void scenario_callbacks(void);
void scenario_many(void);
void scenario_cancel(void);

/* test-client-checked.c */
void scenario_checked(void);

/* test-client-library.c */
void scenario_library(void);

/* test-client-prepared.c */
void scenario_prepared(void);

/* test-client-series.c */
void scenario_series(void);

/* test-client-texture.c */
void scenario_textures(void);

/* test-client-life.c */
void scenario_null_handles(void);
void scenario_fork(void);
void scenario_free_client_first(void);
void scenario_daemon_ends(void);
void scenario_no_daemon(void);

#endif
