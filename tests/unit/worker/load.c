/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load: what a job costs a worker, without client and supervisor
 *
 *     load [host|device] [IN-FLIGHT] [IN-A-MESSAGE] [SECONDS] [FLOATS] [OPTION OF THE WORKER...]
 *
 * Keeps so many additions of 10,000 float32 in flight and prints how many end a
 * second. No test: figures depend on the machine. As test-worker.c it takes the
 * worker from the environment (fake_supervisor.h).
 */
#include "work.h"

#include <stdio.h>
#include <time.h>

enum { LOAD_MODULE = 1, LOAD_ARENA = 1, LOAD_MAX = 4096, LOAD_ALIGN = 256 };

typedef struct Load {
        Supervisor supervisor;
        HostArena arena;
        bool device;
        unsigned n_jobs, n_message;
        double seconds;
        uint64_t n_floats;
        Work *works;
        uint8_t *message;
        unsigned idle[LOAD_MAX]; /* not in flight */
        unsigned n_idle;
        uint64_t ran_us; /* of all jobs, from issued to seen done */
} Load;

static double load_now(void) {
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t load_slice(const Load *load) {
        return (load->n_floats * sizeof(float) + LOAD_ALIGN - 1) / LOAD_ALIGN * LOAD_ALIGN;
}

static void load_arena(Load *load) {
        uint64_t size = 3 * load->n_jobs * load_slice(load);

        if (!load->device) {
                load->arena = host_arena(&load->supervisor, LOAD_ARENA, size);
                return;
        }
        device_arena_make(&load->supervisor, LOAD_ARENA, size);
        supervisor_await(&load->supervisor, FROM_WORKER_ARENA_MADE);
}

static void load_module(Load *load) {
        module_send_builtin(&load->supervisor, LOAD_MODULE);
        supervisor_await(&load->supervisor, FROM_WORKER_MODULE_ADDED);
}

static void load_make_jobs(Load *load) {
        load->works = calloc(load->n_jobs, sizeof(*load->works));
        load->message = malloc(load->n_message * sizeof(*load->works));
        assert_non_null(load->works);
        assert_non_null(load->message);
        for (unsigned i = 0; i < load->n_jobs; ++i) {
                Work *work = &load->works[i];

                work_init(work, i);
                for (unsigned k = 0; k < 3; ++k)
                        work_buffer(work, LOAD_ARENA, (3 * i + k) * load_slice(load),
                                    load->n_floats * sizeof(float), k == 2 ? OUT : IN);
                work_launch(work, work_kernel(work, LOAD_MODULE, "add_f32"),
                            (unsigned)(load->n_floats + 255) / 256, 256, "bbbl", 0, 1, 2,
                            load->n_floats);
                work_pack(work);
                load->idle[load->n_idle++] = i;
        }
}

static void load_send(Load *load) {
        while (load->n_idle > 0) {
                uint8_t *p = load->message;

                for (unsigned n = 0; load->n_idle > 0 && n < load->n_message; ++n)
                        p = work_write(&load->works[load->idle[--load->n_idle]], NULL, p);
                jobs_send(&load->supervisor, load->message, (size_t)(p - load->message));
        }
}

static unsigned load_await(Load *load) {
        const WorkerMessage *told = supervisor_await(&load->supervisor, FROM_WORKER_ENDS);
        const WorkerEnd *ends = told->items;

        if (told->head.code)
                fail_msg("%s", told->text);
        for (size_t i = 0; i < told->head.n_items; ++i) {
                load->idle[load->n_idle++] = (unsigned)ends[i].id;
                load->ran_us += ends[i].ran_us;
        }
        return told->head.n_items;
}

static void load_run(Load *load) {
        double begin = load_now(), now;
        uint64_t n = 0;

        do {
                load_send(load);
                n += load_await(load);
                now = load_now();
        } while (now - begin < load->seconds);
        while (load->n_idle < load->n_jobs)
                load_await(load);
        printf("%s %u in flight, %u a message: %.0f jobs/s, %.2f us each, %.1f us from issued to "
               "done\n",
               load->device ? "device" : "host", load->n_jobs, load->n_message,
               (double)n / (now - begin), 1e6 * (now - begin) / (double)n,
               (double)load->ran_us / (double)n);
}

static void load_tell_counters(Load *load) {
        Gpuq__V1__WorkerCounters counters =
                work_counters(supervisor_await(&load->supervisor, FROM_WORKER_STATS));

        printf("  %.1f jobs a batch; jobs in place %llu, moved by kernel %llu, copied %llu\n",
               (double)counters.coalesced / (double)(counters.batches ? counters.batches : 1),
               (unsigned long long)counters.in_place, (unsigned long long)counters.staged_by_kernel,
               (unsigned long long)counters.staged_by_copy);
}

static double load_number(int argc, char **argv, int i, double standard) {
        return argc > i ? atof(argv[i]) : standard;
}

int main(int argc, char **argv) {
        static Load load;

        load.device = argc > 1 && strcmp(argv[1], "device") == 0;
        load.n_jobs = (unsigned)load_number(argc, argv, 2, 512);
        load.n_message = (unsigned)load_number(argc, argv, 3, 16);
        load.seconds = load_number(argc, argv, 4, 2);
        load.n_floats = (uint64_t)load_number(argc, argv, 5, 10000);
        if (!supervisor_folder() || load.n_jobs > LOAD_MAX || load.n_jobs == 0) {
                fprintf(stderr, "load: no worker to load, or too many jobs\n");
                return 2;
        }
        for (int i = 6; i < argc && i < 6 + SUPERVISOR_OPTIONS_MAX; ++i)
                supervisor_options[i - 6] = argv[i];

        load.supervisor = supervisor_start(false);
        load_arena(&load);
        load_module(&load);
        load_make_jobs(&load);
        load_run(&load);
        load_tell_counters(&load);
        supervisor_end(&load.supervisor);
        supervisor_folder_remove();
        return 0;
}
