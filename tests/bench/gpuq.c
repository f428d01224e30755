/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs through gpuqd. Copies and in place are the same request here: a job on host
 * buffers, and the service chooses. What ended together is started again together.
 *
 * Two contenders: one makes each job anew and submits it, the other prepares it once
 * for each slot and fires it.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq.h"
#include "util/macro.h"

#define GPUQ_NAN UINT32_C(0x7fc00000)

typedef struct Slot {
        gpuq_buffer *host[3];    /* a, b, c */
        gpuq_buffer *device[3];  /* NULL: not wanted yet */
        gpuq_buffer **args;      /* what the kernel gets: one of these two */
        gpuq_prepared *prepared; /* NULL: a job is made anew each time */
        gpuq_job *job;
        struct State *state;
} Slot;

typedef struct State {
        const BenchOptions *options;
        gpuq_client *client;
        gpuq_module *module;
        const char *kernel;
        size_t n_bytes; /* of a, b or c */
        bool fires;     /* prepared jobs */
        Slot slots[BENCH_SLOTS_MAX];
        unsigned started[BENCH_SLOTS_MAX]; /* slots whose job is not submitted yet */
        unsigned n_started;
        unsigned n_flying;               /* submitted, their end not told */
        unsigned ended[BENCH_SLOTS_MAX]; /* slots whose job ended, not told yet */
        unsigned n_ended, n_told;
} State;

static int failed(void) {
        fprintf(stderr, "gpuq: %s\n", gpuq_error_text());
        return -1;
}

/* ---- making ready ------------------------------------------------------------------ */

/* PTX for a GPU; the CPU driver takes no PTX, and compiles the source. */
static int gpuq_open_spin(State *state) {
        static const char *const names[] = {"spin.ptx", "spin.cu"};
        int r = GPUQ_E_NOT_FOUND;

        state->kernel = "spin_add_f32";
        for (unsigned i = 0; i < ARRAY_SIZE(names) && r < 0; i++) {
                size_t n = 0;
                _cleanup_(freep) char *image = bench_file(state->options->spins, names[i], &n);

                if (image)
                        r = gpuq_module_load(state->client, GPUQ_FORMAT_AUTO, image, n, NULL,
                                             names[i], &state->module);
        }
        return r < 0 ? failed() : 0;
}

static int gpuq_open_module(State *state) {
        if (state->options->spin_ns)
                return gpuq_open_spin(state);

        state->kernel = "add_f32";
        return gpuq_module_builtin(state->client, &state->module) < 0 ? failed() : 0;
}

static int gpuq_open(const BenchOptions *options, void **ret_state) {
        State *state = calloc(1, sizeof(*state));

        if (!state)
                return -1;
        state->options = options;
        state->n_bytes = options->n * sizeof(float);

        if (gpuq_connect(options->socket, &state->client) < 0)
                return failed();
        if (gpuq_open_module(state) < 0)
                return -1;
        for (unsigned i = 0; i < options->n_slots; i++) {
                Slot *slot = &state->slots[i];

                slot->state = state;
                for (unsigned k = 0; k < 3; k++)
                        if (gpuq_buffer_new(state->client, state->n_bytes, &slot->host[k]) < 0)
                                return failed();
        }
        *ret_state = state;
        return 0;
}

static int gpuq_open_prepared(const BenchOptions *options, void **ret_state) {
        State *state;

        if (gpuq_open(options, ret_state) < 0)
                return -1;
        state = *ret_state;
        state->fires = true;
        return 0;
}

static void gpuq_inputs(void *p, unsigned slot, float **ret_a, float **ret_b) {
        State *state = p;

        *ret_a = gpuq_buffer_data(state->slots[slot].host[0]);
        *ret_b = gpuq_buffer_data(state->slots[slot].host[1]);
}

/* a and b onto the device, and c spoilt, in one job that is waited for. */
static int slot_place(Slot *slot) {
        State *state = slot->state;
        gpuq_job *job = NULL;
        int r;

        r = gpuq_job_new(state->client, &job);
        for (unsigned i = 0; i < 2 && r >= 0; i++)
                r = gpuq_job_copy(job, slot->device[i], 0, slot->host[i], 0, state->n_bytes);
        if (r >= 0)
                r = gpuq_job_fill(job, slot->device[2], 0, state->n_bytes, GPUQ_NAN, 4);
        if (r >= 0)
                r = gpuq_run(job);
        gpuq_job_free(job);
        return r < 0 ? failed() : 0;
}

static int slot_want_device(Slot *slot) {
        for (unsigned i = 0; i < 3; i++)
                if (!slot->device[i] &&
                    gpuq_buffer_new_device(slot->state->client, slot->state->n_bytes, -1,
                                           &slot->device[i]) < 0)
                        return failed();
        return 0;
}

/* c = a + b, then c = c + b as often as is left. */
static int slot_describe(Slot *slot) {
        const BenchOptions *options = slot->state->options;
        gpuq_config config = {.grid = {(unsigned)((options->n + BENCH_BLOCK - 1) / BENCH_BLOCK)},
                              .block = {BENCH_BLOCK}};
        gpuq_arg args[] = {gpuq_in(slot->args[0]), gpuq_in(slot->args[1]),
                           gpuq_out_whole(slot->args[2]), gpuq_u64(options->n),
                           gpuq_u64(options->spin_ns)};
        size_t n_args = ARRAY_SIZE(args) - (options->spin_ns ? 0 : 1);
        int r = 0;

        if (options->spin_ns)
                config.grid[0] = options->n_blocks;
        for (unsigned i = 0; i < options->n_launches && r >= 0; i++) {
                if (i)
                        args[0] = gpuq_in(slot->args[2]);
                r = gpuq_job_launch(slot->job, slot->state->module, slot->state->kernel, &config,
                                    args, n_args);
        }
        return r;
}

static int slot_build(Slot *slot) {
        if (gpuq_job_new(slot->state->client, &slot->job) < 0 || slot_describe(slot) < 0)
                return failed();
        return 0;
}

static void slot_clear(Slot *slot) {
        gpuq_job_free(slot->job);
        slot->job = NULL;
}

/* On other buffers than before: what was prepared for those goes. */
static int slot_prepare(Slot *slot) {
        int r;

        gpuq_prepared_free(slot->prepared);
        slot->prepared = NULL;
        if (slot_build(slot) < 0)
                return -1;

        r = gpuq_prepare(slot->job, &slot->prepared);
        slot_clear(slot);
        return r < 0 ? failed() : 0;
}

static int gpuq_place(void *p, BenchData data) {
        State *state = p;

        for (unsigned i = 0; i < state->options->n_slots; i++) {
                Slot *slot = &state->slots[i];

                memset(gpuq_buffer_data(slot->host[2]), 0xff, state->n_bytes); /* NaN */
                slot->args = data == BENCH_DEVICE ? slot->device : slot->host;
                if (data == BENCH_DEVICE && (slot_want_device(slot) < 0 || slot_place(slot) < 0))
                        return -1;
                if (state->fires && slot_prepare(slot) < 0)
                        return -1;
        }
        return 0;
}

/* ---- jobs -------------------------------------------------------------------------- */

static void on_end(gpuq_job *job, void *userdata) {
        Slot *slot = userdata;
        State *state = slot->state;

        state->ended[state->n_ended++ % BENCH_SLOTS_MAX] = (unsigned)(slot - state->slots);
}

static int gpuq_start(void *p, unsigned index) {
        State *state = p;

        state->started[state->n_started++] = index;
        return state->fires ? 0 : slot_build(&state->slots[index]);
}

static int slot_fire(Slot *slot, gpuq_job_func func) {
        gpuq_fire_args args = {.func = func, .userdata = slot};

        return gpuq_fire(slot->prepared, &args, &slot->job);
}

/* One job alone: submitted and waited for, as a program does that has nothing else to do. */
static int gpuq_next_alone(State *state, unsigned *ret_slot) {
        Slot *slot = &state->slots[state->started[0]];
        int r;

        state->n_started = 0;
        r = state->fires ? slot_fire(slot, NULL) : gpuq_submit(slot->job);
        if (r < 0 || gpuq_wait(slot->job, -1) < 0)
                return failed();

        *ret_slot = (unsigned)(slot - state->slots);
        slot_clear(slot);
        return 0;
}

static int gpuq_fire_all(State *state) {
        int r = 0;

        for (unsigned i = 0; i < state->n_started && r >= 0; i++)
                r = slot_fire(&state->slots[state->started[i]], on_end);
        return r;
}

static int gpuq_submit_all(State *state) {
        gpuq_job *jobs[BENCH_SLOTS_MAX];
        int r = 0;

        for (unsigned i = 0; i < state->n_started && r >= 0; i++) {
                Slot *slot = &state->slots[state->started[i]];

                r = gpuq_job_set_callback(slot->job, on_end, slot);
                jobs[i] = slot->job;
        }
        return r < 0 ? r : gpuq_submit_many(jobs, state->n_started);
}

static int gpuq_flush(State *state) {
        if (state->n_started == 0)
                return 0;
        if ((state->fires ? gpuq_fire_all(state) : gpuq_submit_all(state)) < 0)
                return failed();

        state->n_flying += state->n_started;
        state->n_started = 0;
        return 0;
}

static int gpuq_next(void *p, unsigned *ret_slot) {
        State *state = p;
        gpuq_result result;
        Slot *slot;

        if (state->n_started == 1 && state->n_flying == 0)
                return gpuq_next_alone(state, ret_slot);
        if (state->n_ended == state->n_told && gpuq_flush(state) < 0)
                return -1;
        while (state->n_ended == state->n_told)
                if (gpuq_dispatch(state->client, -1) < 0)
                        return failed();
        *ret_slot = state->ended[state->n_told++ % BENCH_SLOTS_MAX];
        --state->n_flying;

        slot = &state->slots[*ret_slot];
        if (gpuq_job_get_result(slot->job, &result) < 0)
                return failed();
        if (result.state != GPUQ_DONE) {
                fprintf(stderr, "gpuq: %s\n", result.text);
                return -1;
        }
        slot_clear(slot);
        return 0;
}

static const float *gpuq_result_of(void *p, unsigned index) {
        State *state = p;
        Slot *slot = &state->slots[index];
        gpuq_job *job = NULL;
        int r;

        if (slot->args == slot->host)
                return gpuq_buffer_data(slot->host[2]);

        r = gpuq_job_new(state->client, &job);
        if (r >= 0)
                r = gpuq_job_copy(job, slot->host[2], 0, slot->device[2], 0, state->n_bytes);
        if (r >= 0)
                r = gpuq_run(job);
        gpuq_job_free(job);
        return r < 0 ? NULL : gpuq_buffer_data(slot->host[2]);
}

static void gpuq_close(void *p) {
        State *state = p;

        for (unsigned i = 0; i < state->options->n_slots; i++) {
                gpuq_prepared_free(state->slots[i].prepared);
                for (unsigned k = 0; k < 3; k++) {
                        gpuq_buffer_free(state->slots[i].device[k]);
                        gpuq_buffer_free(state->slots[i].host[k]);
                }
        }
        gpuq_module_free(state->module);
        gpuq_client_free(state->client);
        free(state);
}

#define GPUQ_OPERATIONS                                                                            \
        .inputs = gpuq_inputs, .prepare = gpuq_place, .start = gpuq_start, .next = gpuq_next,      \
        .result = gpuq_result_of, .close = gpuq_close

const Contender contender_gpuq = {
        .name = "gpuq",
        .open = gpuq_open,
        GPUQ_OPERATIONS,
};

const Contender contender_prepared = {
        .name = "prepared",
        .open = gpuq_open_prepared,
        GPUQ_OPERATIONS,
};
