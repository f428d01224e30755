/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victim
 *
 * An ordinary user with small jobs, one after the other, while others attack. How
 * long each took and how it ended is in the record. Every result is compared, and
 * so is, from time to time, what the service has to keep: a host arena, read
 * through the service, and a device arena. Bytes that are wrong or gone are
 * counted, with a line each that begins with LOST.
 *
 *     gpuq-test-victim SOURCE RECORD      until SIGTERM
 */

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gpuq.h>

#include "record.h"
#include "user.h"

#define N_NUMBERS   256u
#define N_KEPT      (64u << 10) /* numbers, in each of the two arenas */
#define N_BLOCK     64u
#define PAUSE_NS    1000000 /* between two jobs, and two tries to connect */
#define CHECK_EVERY 512u    /* jobs */

/* As the load numbers them: only jobs of the first kind are timed. */
enum { KIND_JOB = 0, KIND_CHECK = 1, KIND_SETUP = 5 };

typedef struct Victim {
        Record *record;
        char *source;
        gpuq_client *client;
        gpuq_module *module;
        gpuq_buffer *in, *out;
        gpuq_buffer *kept, *device, *back;
        uint32_t pattern[N_KEPT];
        uint32_t wanted[N_NUMBERS];
        uint32_t n_jobs;
        bool has_filled; /* the two arenas hold the pattern */
} Victim;

static volatile sig_atomic_t is_asked_to_end;

static void on_signal(int number) {
        is_asked_to_end = 1;
}

static void victim_pause(void) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static void victim_lose(Victim *victim, uint64_t n_bytes, const char *what) {
        if (n_bytes == 0)
                return;
        atomic_fetch_add(&victim->record->n_lost, n_bytes);
        printf("LOST %llu bytes: %s\n", (unsigned long long)n_bytes, what);
}

static void victim_note(Victim *victim, uint32_t kind, uint64_t since_ns, int code) {
        RecordEntry entry = {since_ns, record_now_ns(), code, kind};

        if (code)
                printf("%s kind %u: %s\n", gpuq_error_name(code), kind, gpuq_error_text());
        record_add(victim->record, &entry);
}

static void victim_compare(Victim *victim, const gpuq_buffer *found, const uint32_t *wanted,
                           unsigned n, const char *what) {
        const uint32_t *numbers = gpuq_buffer_data((gpuq_buffer *)found);
        uint64_t n_wrong = 0;

        for (unsigned i = 0; i < n; i++)
                n_wrong += numbers[i] != wanted[i];
        victim_lose(victim, n_wrong * sizeof(uint32_t), what);
}

/* ---- jobs --------------------------------------------------------------------- */

static int victim_run(Victim *victim, gpuq_job *job, uint32_t kind) {
        uint64_t since_ns = record_now_ns();
        int r;

        r = gpuq_run(job);
        victim_note(victim, kind, since_ns, r);
        return r;
}

/* From the host, or from what the device keeps. */
static int victim_compute(Victim *victim) {
        gpuq_config config = {.grid = {N_NUMBERS / N_BLOCK}, .block = {N_BLOCK}};
        bool from_device = victim->n_jobs % 2;
        uint32_t *in = gpuq_buffer_data(victim->in), key = victim->n_jobs;
        gpuq_job *job = NULL;
        int r;

        for (unsigned i = 0; i < N_NUMBERS; i++)
                in[i] = user_mix_one(i, key);
        user_mix(from_device ? victim->pattern : in, victim->wanted, N_NUMBERS, key);

        r = gpuq_job_new(victim->client, &job);
        if (r == 0) {
                gpuq_arg args[] = {gpuq_in(from_device ? victim->device : victim->in),
                                   gpuq_out(victim->out), gpuq_u32(N_NUMBERS), gpuq_u32(key),
                                   gpuq_u32(USER_N_ROUNDS)};

                r = gpuq_job_launch(job, victim->module, "mix", &config, args, 5);
        }
        if (r == 0)
                r = victim_run(victim, job, KIND_JOB);
        if (r == 0)
                victim_compare(victim, victim->out, victim->wanted, N_NUMBERS, "a job's result");
        gpuq_job_free(job);
        return r;
}

static int victim_copy(Victim *victim, gpuq_buffer *to, gpuq_buffer *from) {
        gpuq_job *job = NULL;
        int r;

        r = gpuq_job_new(victim->client, &job);
        if (r == 0)
                r = gpuq_job_copy(job, to, 0, from, 0, sizeof(victim->pattern));
        if (r == 0)
                r = victim_run(victim, job, KIND_CHECK);
        gpuq_job_free(job);
        return r;
}

/* As the service sees them, not as they are mapped here. */
static int victim_check(Victim *victim) {
        gpuq_buffer *kept[] = {victim->kept, victim->device};
        const char *names[] = {"the host arena", "the device arena"};
        int r = 0;

        for (unsigned i = 0; i < 2 && r == 0; i++) {
                memset(gpuq_buffer_data(victim->back), 0, sizeof(victim->pattern));
                r = victim_copy(victim, victim->back, kept[i]);
                if (r == 0)
                        victim_compare(victim, victim->back, victim->pattern, N_KEPT, names[i]);
                else if (r == GPUQ_E_NOT_FOUND)
                        victim_lose(victim, sizeof(victim->pattern), names[i]);
        }
        return r;
}

/* ---- a session ---------------------------------------------------------------- */

static int victim_make(Victim *victim) {
        size_t n_kept = sizeof(victim->pattern), n_small = sizeof(victim->wanted);
        int r;

        r = gpuq_buffer_new(victim->client, n_small, &victim->in);
        if (r == 0)
                r = gpuq_buffer_new(victim->client, n_small, &victim->out);
        if (r == 0)
                r = gpuq_buffer_new(victim->client, n_kept, &victim->kept);
        if (r == 0)
                r = gpuq_buffer_new(victim->client, n_kept, &victim->back);
        if (r == 0)
                r = gpuq_buffer_new_device(victim->client, n_kept, -1, &victim->device);
        return r;
}

static int victim_set_up(Victim *victim) {
        int r;

        r = gpuq_connect(NULL, &victim->client);
        if (r < 0)
                return r;
        atomic_fetch_add(&victim->record->n_connects, 1);
        r = gpuq_module_load(victim->client, GPUQ_FORMAT_SOURCE, victim->source,
                             strlen(victim->source), NULL, "mix.cu", &victim->module);
        if (r == 0)
                r = victim_make(victim);
        if (r == 0) {
                memcpy(gpuq_buffer_data(victim->kept), victim->pattern, sizeof(victim->pattern));
                r = victim_copy(victim, victim->device, victim->kept);
        }
        victim->has_filled = r == 0;
        return r;
}

static void victim_tear_down(Victim *victim) {
        gpuq_buffer **buffers[] = {&victim->in, &victim->out, &victim->kept, &victim->back,
                                   &victim->device};

        if (victim->has_filled)
                victim_lose(victim, 2 * sizeof(victim->pattern), "the session with its arenas");
        victim->has_filled = false;
        for (unsigned i = 0; i < sizeof(buffers) / sizeof(*buffers); i++) {
                gpuq_buffer_free(*buffers[i]);
                *buffers[i] = NULL;
        }
        gpuq_module_free(victim->module);
        gpuq_client_free(victim->client);
        victim->module = NULL;
        victim->client = NULL;
}

/* Return: 0 when asked to end, or the code with which the session was lost. */
static int victim_session(Victim *victim) {
        int r;

        while (!is_asked_to_end) {
                r = victim_compute(victim);
                if (!user_is_lost(r) && ++victim->n_jobs % CHECK_EVERY == 0)
                        r = victim_check(victim);
                if (user_is_lost(r))
                        return r;
                victim_pause();
        }
        r = victim_check(victim);
        return user_is_lost(r) ? r : 0;
}

static void victim_live(Victim *victim) {
        uint64_t since_ns;
        int r;

        do {
                since_ns = record_now_ns();
                r = victim_set_up(victim);
                if (r == 0)
                        r = victim_session(victim);
                else
                        victim_note(victim, KIND_SETUP, since_ns, r);
                if (r == 0)
                        return;
                victim_tear_down(victim);
                victim_pause();
        } while (!is_asked_to_end);
}

int main(int argc, char **argv) {
        static Victim victim;
        struct sigaction action = {.sa_handler = on_signal};

        if (argc != 3)
                errx(2, "usage: gpuq-test-victim SOURCE RECORD");
        setvbuf(stdout, NULL, _IOLBF, 0);
        sigaction(SIGTERM, &action, NULL);
        victim.source = user_read_source(argv[1]);
        victim.record = record_open(argv[2]);
        for (uint32_t i = 0; i < N_KEPT; i++)
                victim.pattern[i] = user_mix_one(i, 17);
        victim_live(&victim);
        return 0;
}
