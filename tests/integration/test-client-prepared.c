/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that are prepared once and fired often.
 */

#include "test-client.h"

#include <string.h>

#define SCALE_FACTOR 0 /* the argument, as scale_job() has it */

static void check_refused(gpuq_prepared *prepared, gpuq_fire_args args, const char *words) {
        gpuq_job *job;

        CHECK(gpuq_fire(prepared, &args, &job) == GPUQ_E_INVALID);
        CHECK(strstr(gpuq_error_text(), words));
}

static void count_end(gpuq_job *job, void *userdata) {
        ++*(unsigned *)userdata;
}

/* Fired once; its result is @factor times 0, 1, 2, … in @y. */
static void fire(gpuq_prepared *prepared, const gpuq_fire_args *args, gpuq_buffer *y,
                 double factor) {
        gpuq_job *job;

        DO(gpuq_fire(prepared, args, &job));
        CHECK(gpuq_job_id(job) != 0);
        CHECK(gpuq_submit(job) == GPUQ_E_INVALID);
        DO(gpuq_wait(job, -1));
        CHECK(is_scaled(y, factor));
        gpuq_job_free(job);
}

static void fire_wrongly(gpuq_prepared *prepared, gpuq_buffer *stranger, gpuq_buffer *x) {
        gpuq_swap swap = {stranger, x}, nothing = {x, NULL};
        gpuq_set kind = {0, SCALE_FACTOR, gpuq_f32(1)}, buffer = {0, 1, gpuq_f64(1)};
        gpuq_set operation = {7, SCALE_FACTOR, gpuq_f64(1)}, many[9] = {kind};

        check_refused(prepared, (gpuq_fire_args){.swaps = &swap, .n_swaps = 1}, "does not use");
        check_refused(prepared, (gpuq_fire_args){.swaps = &nothing, .n_swaps = 1}, "NULL");
        check_refused(prepared, (gpuq_fire_args){.sets = &kind, .n_sets = 1}, "kind");
        check_refused(prepared, (gpuq_fire_args){.sets = &buffer, .n_sets = 1}, "not a scalar");
        check_refused(prepared, (gpuq_fire_args){.sets = &operation, .n_sets = 1}, "not a scalar");
        check_refused(prepared, (gpuq_fire_args){.sets = many, .n_sets = 9}, "9 scalars");
}

void scenario_prepared(void) {
        gpuq_buffer *x, *y, *x2, *y2;
        gpuq_prepared *prepared;
        gpuq_module *builtin;
        gpuq_client *client;
        unsigned n_ended = 0;
        gpuq_job *job;

        DO(gpuq_connect(NULL, &client));
        DO(gpuq_module_builtin(client, &builtin));
        x = filled(client, 1);
        x2 = filled(client, 10);
        DO(gpuq_buffer_new(client, N * sizeof(double), &y));
        DO(gpuq_buffer_new(client, N * sizeof(double), &y2));
        DO(gpuq_job_new(client, &job));
        CHECK(gpuq_prepare(job, &prepared) == GPUQ_E_INVALID);
        gpuq_job_free(job);

        job = scale_job(client, builtin, 2, x, y);
        DO(gpuq_prepare(job, &prepared));
        gpuq_job_free(job);
        gpuq_module_free(builtin);

        gpuq_swap swaps[] = {{x, x2}, {y, y2}};
        gpuq_set set = {0, SCALE_FACTOR, gpuq_f64(3)};
        gpuq_fire_args args = {swaps, 2, &set, 1, count_end, &n_ended};

        fire(prepared, NULL, y, 2);
        fire(prepared, &args, y2, 30);
        CHECK(n_ended == 1);
        fire(prepared, &(gpuq_fire_args){.swaps = &swaps[1], .n_swaps = 1}, y2, 2);
        fire(prepared, &(gpuq_fire_args){.sets = &set, .n_sets = 1}, y, 3);
        fire_wrongly(prepared, y2, x);
        for (unsigned i = 0; i < 200; i++)
                fire(prepared, i % 2 ? &args : NULL, i % 2 ? y2 : y, i % 2 ? 30 : 2);

        DO(gpuq_fire(prepared, NULL, &job));
        gpuq_prepared_free(prepared);
        DO(gpuq_wait(job, -1));
        CHECK(is_scaled(y, 2));
        drop(job, y);
        gpuq_buffer_free(y2);
        gpuq_buffer_free(x);
        gpuq_buffer_free(x2);
        gpuq_client_free(client);
}
