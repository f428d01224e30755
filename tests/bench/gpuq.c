/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The small job through gpuqd. With --device-data the inputs are copied to
 * device buffers once and c is read back only to be checked.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpuq.h"

typedef struct Slot {
        gpuq_buffer *host[3]; /* a, b, c */
        gpuq_buffer *data[3]; /* what the kernel gets: those, or device buffers */
        gpuq_job *job;
        struct State *state;
} Slot;

typedef struct State {
        gpuq_client *client;
        gpuq_module *module;
        size_t n;
        bool on_device;
        unsigned n_slots;
        Slot slots[BENCH_SLOTS_MAX];
        unsigned ended[BENCH_SLOTS_MAX]; /* slots whose job ended, not yet told */
        unsigned n_ended;
} State;

static int failed(void) {
        fprintf(stderr, "gpuq: %s\n", gpuq_error_text());
        return -1;
}

static int slot_open(State *state, Slot *slot) {
        size_t size = state->n * sizeof(float);

        slot->state = state;
        for (unsigned i = 0; i < 3; i++) {
                if (gpuq_buffer_new(state->client, size, &slot->host[i]) < 0)
                        return failed();
                slot->data[i] = slot->host[i];
                if (state->on_device &&
                    gpuq_buffer_new_device(state->client, size, -1, &slot->data[i]) < 0)
                        return failed();
        }
        return 0;
}

static int gpuq_open(const BenchOptions *options, void **ret_state) {
        State *state = calloc(1, sizeof(*state));

        if (!state)
                return -1;
        state->n = options->n;
        state->on_device = options->on_device;
        state->n_slots = options->n_slots;
        if (gpuq_connect(options->socket, &state->client) < 0 ||
            gpuq_module_builtin(state->client, &state->module) < 0)
                return failed();
        for (unsigned i = 0; i < options->n_slots; i++)
                if (slot_open(state, &state->slots[i]) < 0)
                        return -1;
        *ret_state = state;
        return 0;
}

static void gpuq_inputs(void *p, unsigned slot, float **ret_a, float **ret_b) {
        State *state = p;

        *ret_a = gpuq_buffer_data(state->slots[slot].host[0]);
        *ret_b = gpuq_buffer_data(state->slots[slot].host[1]);
}

/* One copy between a slot's host and device buffers, waited for. */
static int slot_copy(Slot *slot, gpuq_buffer *to, gpuq_buffer *from) {
        gpuq_job *job = NULL;
        int r;

        if (gpuq_job_new(slot->state->client, &job) < 0)
                return failed();
        r = gpuq_job_copy(job, to, 0, from, 0, slot->state->n * sizeof(float));
        if (r >= 0)
                r = gpuq_run(job);
        gpuq_job_free(job);
        return r < 0 ? failed() : 0;
}

static int gpuq_ready(void *p) {
        State *state = p;

        for (unsigned i = 0; state->on_device && i < state->n_slots; i++)
                for (unsigned k = 0; k < 2; k++)
                        if (slot_copy(&state->slots[i], state->slots[i].data[k],
                                      state->slots[i].host[k]) < 0)
                                return -1;
        return 0;
}

static void on_end(gpuq_job *job, void *userdata) {
        Slot *slot = userdata;
        State *state = slot->state;

        state->ended[state->n_ended++] = (unsigned)(slot - state->slots);
}

static int gpuq_start(void *p, unsigned index) {
        State *state = p;
        Slot *slot = &state->slots[index];
        gpuq_config config = {.grid = {(unsigned)((state->n + 255) / 256)}, .block = {256}};
        gpuq_arg args[] = {gpuq_in(slot->data[0]), gpuq_in(slot->data[1]), gpuq_out(slot->data[2]),
                           gpuq_u64(state->n)};

        if (gpuq_job_new(state->client, &slot->job) < 0 ||
            gpuq_job_launch(slot->job, state->module, "add_f32", &config, args, 4) < 0 ||
            gpuq_job_set_callback(slot->job, on_end, slot) < 0 || gpuq_submit(slot->job) < 0)
                return failed();
        return 0;
}

static int gpuq_next(void *p, unsigned *ret_slot) {
        State *state = p;
        Slot *slot;
        gpuq_result result;

        while (!state->n_ended)
                if (gpuq_dispatch(state->client, -1) < 0)
                        return failed();
        *ret_slot = state->ended[--state->n_ended];

        slot = &state->slots[*ret_slot];
        if (gpuq_job_get_result(slot->job, &result) < 0)
                return failed();
        if (result.state != GPUQ_DONE) {
                fprintf(stderr, "gpuq: %s\n", result.text);
                return -1;
        }
        gpuq_job_free(slot->job);
        slot->job = NULL;
        return 0;
}

static const float *gpuq_result_of(void *p, unsigned index) {
        State *state = p;
        Slot *slot = &state->slots[index];

        if (state->on_device && slot_copy(slot, slot->host[2], slot->data[2]) < 0)
                return NULL;
        return gpuq_buffer_data(slot->host[2]);
}

static void gpuq_close(void *p) {
        State *state = p;

        for (unsigned i = 0; i < state->n_slots; i++)
                for (unsigned k = 0; k < 3; k++) {
                        if (state->on_device)
                                gpuq_buffer_free(state->slots[i].data[k]);
                        gpuq_buffer_free(state->slots[i].host[k]);
                }
        gpuq_module_free(state->module);
        gpuq_client_free(state->client);
        free(state);
}

const Contender contender_gpuq = {
        .name = "gpuq",
        .open = gpuq_open,
        .inputs = gpuq_inputs,
        .ready = gpuq_ready,
        .start = gpuq_start,
        .next = gpuq_next,
        .result = gpuq_result_of,
        .close = gpuq_close,
};
