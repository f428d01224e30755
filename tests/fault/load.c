/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load
 *
 * One process of many that use the service as anybody would, through libgpuq,
 * while a test breaks things around them: jobs without end, every result compared
 * bit for bit with what this process computes itself. A job that fails is
 * recorded with its code, and whether that was allowed is for the test to say; a
 * wrong result, or a job that ends twice, ends the process with status 1. When
 * the connection is lost it connects again and starts anew.
 *
 *     gpuq-test-load SOURCE RECORD SEED [JOBS]      until SIGTERM, or for so many jobs
 */

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gpuq.h>

#include "record.h"
#include "user.h"

#define N_LANES       4u    /* jobs in flight */
#define N_NUMBERS_MAX 4096u /* of a buffer */
#define N_BLOCK       64u
#define N_DETACHED    16u     /* one of so many jobs of the first lane is a detached one */
#define PAUSE_NS      2000000 /* between two tries to connect */
#define TRIES_MAX     60000u

typedef enum Kind {
        KIND_STAGED,       /* host to host */
        KIND_HOST_INOUT,   /* host memory in place */
        KIND_DEVICE_IN,    /* from device memory that must never change */
        KIND_DEVICE_INOUT, /* device memory in place, then a copy to the host */
        KIND_RESET,        /* device memory written anew after a failure */
        KIND_SETUP,        /* no job: connecting, loading, making buffers */
        KIND_DETACHED,     /* host to host, handed over for good */
} Kind;

typedef struct Lane {
        gpuq_buffer *in, *out, *constant, *device;
        uint32_t numbers[N_NUMBERS_MAX];   /* what `in` holds */
        uint32_t constants[N_NUMBERS_MAX]; /* what `constant` holds */
        uint32_t model[N_NUMBERS_MAX];     /* what `device` holds */
        uint32_t wanted[N_NUMBERS_MAX];    /* what `out` must hold when the job has ended well */
        unsigned n;
        bool knows_device, knows_constant;

        gpuq_job *job;
        Kind kind;
        uint32_t key;
        uint64_t submitted_ns;
        unsigned n_callbacks;
} Lane;

/* Outlives the session. */
typedef struct Detached {
        uint64_t id; /* 0: there is none */
        uint64_t submitted_ns;
        uint32_t wanted[N_NUMBERS_MAX];
        unsigned n;
} Detached;

typedef struct Load {
        Record *record;
        char *source;
        uint64_t random;
        uint64_t jobs_left;
        gpuq_client *client;
        gpuq_module *module;
        Lane lanes[N_LANES];
        Detached detached;
} Load;

static volatile sig_atomic_t is_asked_to_end;

static void on_signal(int number) {
        is_asked_to_end = 1;
}

static uint32_t load_random(Load *load) {
        load->random = load->random * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(load->random >> 33);
}

/* ---- errors ------------------------------------------------------------------ */

static void load_note(Load *load, Kind kind, uint64_t submitted_ns, int code, const char *text) {
        if (code && !*text)
                errx(1, "error %s without a word", gpuq_error_name(code));
        if (code)
                printf("%s kind %d: %s\n", gpuq_error_name(code), kind, text);
        record_add(load->record, &(RecordEntry){
                                         .submitted_ns = submitted_ns,
                                         .ended_ns = record_now_ns(),
                                         .code = code,
                                         .kind = kind,
                                 });
}

static void __attribute__((noreturn)) lane_wrong(const Lane *lane, const char *what, unsigned i) {
        const uint32_t *out = gpuq_buffer_data(lane->out);
        char id[24];

        errx(1, "WRONG RESULT: %s, job %s of kind %d, number %u of %u is %08x, not %08x", what,
             gpuq_id_format(gpuq_job_id(lane->job), id), lane->kind, i, lane->n, out[i],
             lane->wanted[i]);
}

/* ---- a lane's buffers --------------------------------------------------------- */

static int lane_make(Load *load, Lane *lane) {
        int r;

        lane->n = 1 + load_random(load) % N_NUMBERS_MAX;
        lane->knows_device = lane->knows_constant = false;
        r = gpuq_buffer_new(load->client, lane->n * sizeof(uint32_t), &lane->in);
        if (r == 0)
                r = gpuq_buffer_new(load->client, lane->n * sizeof(uint32_t), &lane->out);
        if (r == 0)
                r = gpuq_buffer_new_device(load->client, lane->n * sizeof(uint32_t), -1,
                                           &lane->constant);
        if (r == 0)
                r = gpuq_buffer_new_device(load->client, lane->n * sizeof(uint32_t), -1,
                                           &lane->device);
        return r;
}

static void lane_drop(Lane *lane) {
        gpuq_job_free(lane->job);
        gpuq_buffer_free(lane->in);
        gpuq_buffer_free(lane->out);
        gpuq_buffer_free(lane->constant);
        gpuq_buffer_free(lane->device);
        lane->job = NULL;
        lane->in = lane->out = lane->constant = lane->device = NULL;
}

/* ---- one job ------------------------------------------------------------------ */

static void on_end(gpuq_job *job, void *userdata) {
        Lane *lane = userdata;

        if (++lane->n_callbacks > 1)
                errx(1, "a job ended twice");
}

static int lane_launch(Load *load, Lane *lane, gpuq_arg first, gpuq_arg second, bool in_place) {
        gpuq_config config = {.grid = {(lane->n + N_BLOCK - 1) / N_BLOCK}, .block = {N_BLOCK}};
        gpuq_arg args[5] = {first};
        size_t n = 1;

        if (!in_place)
                args[n++] = second;
        args[n++] = gpuq_u32(lane->n);
        args[n++] = gpuq_u32(lane->key);
        args[n++] = gpuq_u32(USER_N_ROUNDS);
        return gpuq_job_launch(lane->job, load->module, in_place ? "mix_in_place" : "mix", &config,
                               args, n);
}

/* New numbers for device memory of which it is not known any more what it holds. */
static int lane_fill_reset(Lane *lane) {
        size_t n_bytes = lane->n * sizeof(uint32_t);
        int r = 0;

        if (!lane->knows_constant)
                r = gpuq_job_copy(lane->job, lane->constant, 0, lane->in, 0, n_bytes);
        if (r == 0 && !lane->knows_device)
                r = gpuq_job_copy(lane->job, lane->device, 0, lane->in, 0, n_bytes);
        return r;
}

static int lane_fill(Load *load, Lane *lane) {
        uint32_t *out = gpuq_buffer_data(lane->out);
        int r;

        switch (lane->kind) {
                case KIND_STAGED:
                        user_mix(lane->numbers, lane->wanted, lane->n, lane->key);
                        return lane_launch(load, lane, gpuq_in(lane->in), gpuq_out(lane->out),
                                           false);
                case KIND_HOST_INOUT:
                        memcpy(out, lane->numbers, lane->n * sizeof(uint32_t));
                        user_mix(lane->numbers, lane->wanted, lane->n, lane->key);
                        return lane_launch(load, lane, gpuq_inout(lane->out), gpuq_in(lane->in),
                                           true);
                case KIND_DEVICE_IN:
                        user_mix(lane->constants, lane->wanted, lane->n, lane->key);
                        return lane_launch(load, lane, gpuq_in(lane->constant), gpuq_out(lane->out),
                                           false);
                case KIND_DEVICE_INOUT:
                        user_mix(lane->model, lane->wanted, lane->n, lane->key);
                        r = lane_launch(load, lane, gpuq_inout(lane->device), gpuq_in(lane->in),
                                        true);
                        return r
                                       ?: gpuq_job_copy(lane->job, lane->out, 0, lane->device, 0,
                                                        lane->n * sizeof(uint32_t));
                case KIND_RESET:
                case KIND_SETUP:
                case KIND_DETACHED:
                        break;
        }
        return lane_fill_reset(lane);
}

static void lane_choose(Load *load, Lane *lane) {
        uint32_t *in = gpuq_buffer_data(lane->in);

        lane->key = load_random(load);
        lane->n_callbacks = 0;
        for (unsigned i = 0; i < lane->n; i++)
                in[i] = lane->numbers[i] = user_mix_one(i, lane->key);
        lane->kind = lane->knows_device && lane->knows_constant ? load_random(load) % KIND_RESET
                                                                : KIND_RESET;
}

static int lane_submit(Load *load, Lane *lane) {
        int r;

        lane_choose(load, lane);
        lane->submitted_ns = record_now_ns();
        r = gpuq_job_new(load->client, &lane->job);
        if (r == 0)
                r = gpuq_job_set_callback(lane->job, on_end, lane);
        if (r == 0)
                r = lane_fill(load, lane);
        if (r == 0)
                r = gpuq_submit(lane->job);
        return r;
}

static void lane_compare(Lane *lane) {
        const uint32_t *out = gpuq_buffer_data(lane->out);

        for (unsigned i = 0; i < lane->n; i++)
                if (out[i] != lane->wanted[i])
                        lane_wrong(lane, "not what was computed", i);
}

/* What device memory holds after a job that ended well. */
static void lane_learn(Lane *lane) {
        size_t n_bytes = lane->n * sizeof(uint32_t);

        if (lane->kind == KIND_DEVICE_INOUT)
                memcpy(lane->model, lane->wanted, n_bytes);
        if (lane->kind != KIND_RESET)
                return;
        if (!lane->knows_constant)
                memcpy(lane->constants, lane->numbers, n_bytes);
        if (!lane->knows_device)
                memcpy(lane->model, lane->numbers, n_bytes);
        lane->knows_constant = lane->knows_device = true;
}

static int lane_finish(Load *load, Lane *lane) {
        int code;

        code = gpuq_wait(lane->job, -1);
        load_note(load, lane->kind, lane->submitted_ns, code, code ? gpuq_error_text() : "");
        if (code == 0) {
                if (lane->n_callbacks != 1)
                        errx(1, "a job ended %u times", lane->n_callbacks);
                if (lane->kind != KIND_RESET)
                        lane_compare(lane);
                lane_learn(lane);
        } else if (lane->kind == KIND_DEVICE_INOUT) {
                lane->knows_device = false;
        }
        gpuq_job_free(lane->job);
        lane->job = NULL;
        return code;
}

/* ---- a detached job ------------------------------------------------------------ */

/* The lane builds it. Who is not told that it is on disk has none. */
static int detached_hand_over(Load *load, Lane *lane) {
        Detached *detached = &load->detached;
        int r;

        lane_choose(load, lane);
        lane->kind = KIND_STAGED;
        detached->submitted_ns = record_now_ns();
        r = gpuq_job_new(load->client, &lane->job);
        if (r == 0)
                r = lane_fill(load, lane);
        if (r == 0)
                r = gpuq_job_detach(lane->job, NULL, 0, &detached->id);
        if (r < 0 && r != GPUQ_E_NO_DEVICE) /* another gpuqd has not let go of the folder yet */
                load_note(load, KIND_DETACHED, detached->submitted_ns, r, gpuq_error_text());

        detached->n = lane->n;
        memcpy(detached->wanted, lane->wanted, lane->n * sizeof(uint32_t));
        gpuq_job_free(lane->job);
        lane->job = NULL;
        return r;
}

static void detached_compare(const Detached *detached, const gpuq_fetched *fetched) {
        size_t n_bytes = detached->n * sizeof(uint32_t);

        if (fetched->n_outputs != 1 || fetched->outputs[0].size != n_bytes ||
            memcmp(fetched->outputs[0].data, detached->wanted, n_bytes) != 0)
                errx(1, "WRONG RESULT: of a detached job");
}

/* What was acknowledged is there until it is discarded, or will be. */
static int detached_failed(Load *load, const char *what, int code, uint64_t since_ns) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        char id[24];

        if (code == GPUQ_E_NOT_FOUND)
                errx(1, "LOST: %s of detached job %s: %s", what,
                     gpuq_id_format(load->detached.id, id), gpuq_error_text());
        if (code == GPUQ_E_NO_DEVICE)
                nanosleep(&pause, NULL);
        else if (!user_is_lost(code))
                load_note(load, KIND_SETUP, since_ns, code, gpuq_error_text());
        return code;
}

static int detached_fetch(Load *load) {
        Detached *detached = &load->detached;
        uint64_t since_ns = record_now_ns();
        gpuq_fetched *fetched;
        int r;

        r = gpuq_fetch(load->client, detached->id, &fetched);
        if (r < 0)
                return detached_failed(load, "fetch", r, since_ns);

        load_note(load, KIND_DETACHED, detached->submitted_ns, fetched->result.error,
                  fetched->result.text);
        if (fetched->result.error == 0)
                detached_compare(detached, fetched);
        gpuq_fetched_free(fetched);
        r = gpuq_discard(load->client, detached->id);
        if (r < 0)
                r = detached_failed(load, "discard", r, since_ns);
        detached->id = 0;
        return r;
}

/* ---- a session ---------------------------------------------------------------- */

static int load_set_up(Load *load) {
        int r;

        r = gpuq_connect(NULL, &load->client);
        if (r < 0)
                return r;
        atomic_fetch_add(&load->record->n_connects, 1);
        r = gpuq_module_load(load->client, GPUQ_FORMAT_SOURCE, load->source, strlen(load->source),
                             NULL, "mix.cu", &load->module);
        for (unsigned i = 0; i < N_LANES && r == 0; i++)
                r = lane_make(load, &load->lanes[i]);
        return r;
}

static void load_tear_down(Load *load) {
        for (unsigned i = 0; i < N_LANES; i++)
                lane_drop(&load->lanes[i]);
        gpuq_module_free(load->module);
        gpuq_client_free(load->client);
        load->module = NULL;
        load->client = NULL;
}

/* Return: 0 to go on, or the code of a session that is lost. */
static int load_turn(Load *load, Lane *lane) {
        uint64_t now_ns = record_now_ns();
        int r = 0;

        if (lane->job) {
                r = lane_finish(load, lane);
        } else if (load->detached.id && lane == load->lanes) {
                r = detached_fetch(load);
        } else if (load->jobs_left && lane == load->lanes && load_random(load) % N_DETACHED == 0) {
                load->jobs_left--;
                r = detached_hand_over(load, lane);
        } else if (load->jobs_left) {
                load->jobs_left--;
                r = lane_submit(load, lane);
                if (r < 0) {
                        load_note(load, KIND_SETUP, now_ns, r, gpuq_error_text());
                        gpuq_job_free(lane->job);
                        lane->job = NULL;
                }
        }
        return user_is_lost(r) ? r : 0;
}

static bool load_is_idle(const Load *load) {
        for (unsigned i = 0; i < N_LANES; i++)
                if (load->lanes[i].job)
                        return false;
        return !load->detached.id;
}

static int load_session(Load *load) {
        int r = 0;

        for (unsigned i = 0; r == 0; i = (i + 1) % N_LANES) {
                if (is_asked_to_end)
                        load->jobs_left = 0;
                if (!load->jobs_left && load_is_idle(load))
                        return 0;
                r = load_turn(load, &load->lanes[i]);
        }
        return r;
}

/* Return: 0 when all is done, or the code of what it could not get over. */
static int load_run(Load *load) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        unsigned n_tries = 0;
        uint64_t since_ns;
        int r;

        do {
                since_ns = record_now_ns();
                r = load_set_up(load);
                if (r < 0 && r != GPUQ_E_CONNECT)
                        load_note(load, KIND_SETUP, since_ns, r, gpuq_error_text());
                if (r == 0) {
                        r = load_session(load);
                        n_tries = 0;
                }
                load_tear_down(load);
                if (r < 0)
                        nanosleep(&pause, NULL);
        } while (r < 0 && !is_asked_to_end && ++n_tries < TRIES_MAX);
        return is_asked_to_end ? 0 : r;
}

int main(int argc, char **argv) {
        static Load load;
        struct sigaction action = {.sa_handler = on_signal};
        int r;

        if (argc < 4 || argc > 5)
                errx(2, "usage: gpuq-test-load SOURCE RECORD SEED [JOBS]");
        setvbuf(stdout, NULL, _IOLBF, 0);
        sigaction(SIGTERM, &action, NULL);

        load.source = user_read_source(argv[1]);
        load.record = record_open(argv[2]);
        load.random = strtoull(argv[3], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
        load.jobs_left = argc == 5 ? strtoull(argv[4], NULL, 0) : UINT64_MAX;
        r = load_run(&load);
        if (r < 0)
                errx(3, "%s", gpuq_error_text());
        return 0;
}
