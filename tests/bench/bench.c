/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Forks the processes, lets them start together, gathers what they measured
 * and prints it as one line of JSON. Every job's first, middle and last element
 * is checked, and every element of each 256th job.
 */

#include "bench.h"

#include <err.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 256
#define SAMPLES_MAX   65536

typedef struct Report {
        uint64_t n_jobs;
        uint64_t first_ns;
        uint64_t last_ns;
        uint64_t opened_ns; /* how long open() took */
        uint32_t n_samples;
        uint32_t samples[SAMPLES_MAX]; /* ns from start to end, the latest SAMPLES_MAX */
} Report;

typedef struct Shared {
        atomic_uint n_ready;
        atomic_uint go;
        Report reports[];
} Shared;

typedef struct Loop {
        const Contender *contender;
        const BenchOptions *options;
        void *state;
        float *b[BENCH_SLOTS_MAX];
        float *a[BENCH_SLOTS_MAX];
        uint64_t started_ns[BENCH_SLOTS_MAX];
        uint64_t number;
} Loop;

static uint64_t now_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* In host memory each job gets an input of its own, so that a stale result shows. */
static void loop_start(Loop *loop, unsigned slot) {
        if (!loop->options->on_device)
                loop->b[slot][0] = (float)(++loop->number % 1000000);

        loop->started_ns[slot] = now_ns();
        if (loop->contender->start(loop->state, slot) < 0)
                errx(1, "%s: a job could not be started", loop->contender->name);
}

static void loop_check(Loop *loop, unsigned slot, bool whole) {
        const float *c = loop->contender->result(loop->state, slot);
        size_t n = loop->options->n;
        size_t step = whole ? 1 : (n > 2 ? (n - 1) / 2 : 1);

        if (!c)
                errx(1, "%s: no result", loop->contender->name);
        for (size_t i = 0; i < n; i += step)
                if (c[i] != loop->a[slot][i] + loop->b[slot][i])
                        errx(1, "%s: element %zu is %g, not %g", loop->contender->name, i, c[i],
                             loop->a[slot][i] + loop->b[slot][i]);
}

static void loop_fill(Loop *loop, unsigned process) {
        for (unsigned slot = 0; slot < loop->options->n_slots; slot++) {
                loop->contender->inputs(loop->state, slot, &loop->a[slot], &loop->b[slot]);
                for (size_t i = 0; i < loop->options->n; i++) {
                        loop->a[slot][i] = (float)(i % 4096) * 0.5f + (float)process;
                        loop->b[slot][i] = (float)(i % 1021) + (float)slot;
                }
        }
        if (loop->contender->ready(loop->state) < 0)
                errx(1, "%s: inputs could not be placed", loop->contender->name);
}

static void loop_run(Loop *loop, uint64_t until_ns, Report *report) {
        bool on_device = loop->options->on_device;
        unsigned in_flight = loop->options->n_slots;
        unsigned slot;

        for (slot = 0; slot < loop->options->n_slots; slot++)
                loop_start(loop, slot);

        while (in_flight) {
                uint64_t t;

                if (loop->contender->next(loop->state, &slot) < 0)
                        errx(1, "%s: a job failed", loop->contender->name);

                t = now_ns();
                if (report) {
                        report->samples[report->n_jobs++ % SAMPLES_MAX] =
                                (uint32_t)(t - loop->started_ns[slot]);
                        report->last_ns = t;
                }
                /* reading device data back is no part of the job */
                if (!on_device)
                        loop_check(loop, slot, report && report->n_jobs % 256 == 1);

                if (t < until_ns)
                        loop_start(loop, slot);
                else
                        in_flight--;
        }

        for (slot = 0; on_device && slot < loop->options->n_slots; slot++)
                loop_check(loop, slot, true);
}

static void child(const Contender *contender, const BenchOptions *options, double seconds,
                  unsigned process, Shared *shared, Report *report) {
        Loop loop = {.contender = contender, .options = options, .number = process * 7919u};
        uint64_t t = now_ns();

        if (contender->open(options, &loop.state) < 0)
                errx(1, "%s: cannot open", contender->name);
        report->opened_ns = now_ns() - t;

        loop_fill(&loop, process);
        loop_run(&loop, 0, NULL); /* warm: one round */

        atomic_fetch_add(&shared->n_ready, 1);
        while (!atomic_load(&shared->go))
                usleep(100);

        report->first_ns = now_ns();
        loop_run(&loop, report->first_ns + (uint64_t)(seconds * 1e9), report);
        report->n_samples = (uint32_t)(report->n_jobs < SAMPLES_MAX ? report->n_jobs : SAMPLES_MAX);
        contender->close(loop.state);
}

static int compare_u32(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static void print(const Contender *contender, const BenchOptions *options, unsigned n_processes,
                  Shared *shared) {
        uint64_t first = UINT64_MAX, last = 0, jobs = 0, opened = 0;
        size_t n_samples = 0;
        uint32_t *all;

        all = malloc((size_t)n_processes * SAMPLES_MAX * sizeof(*all));
        if (!all)
                err(1, "malloc");
        for (unsigned i = 0; i < n_processes; i++) {
                Report *r = &shared->reports[i];

                first = r->first_ns < first ? r->first_ns : first;
                last = r->last_ns > last ? r->last_ns : last;
                opened = r->opened_ns > opened ? r->opened_ns : opened;
                jobs += r->n_jobs;
                memcpy(all + n_samples, r->samples, r->n_samples * sizeof(*all));
                n_samples += r->n_samples;
        }
        qsort(all, n_samples, sizeof(*all), compare_u32);
        printf("{\"contender\": \"%s\", \"data\": \"%s\", \"n\": %zu, \"processes\": %u, "
               "\"in_flight\": %u, "
               "\"jobs\": %llu, \"jobs_per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
               "\"open_s\": %.3f}\n",
               contender->name, options->on_device ? "device" : "copies", options->n, n_processes,
               options->n_slots, (unsigned long long)jobs,
               (double)jobs / ((double)(last - first) / 1e9),
               n_samples ? all[n_samples / 2] / 1e3 : 0,
               n_samples ? all[n_samples * 99 / 100] / 1e3 : 0, (double)opened / 1e9);
        free(all);
}

/* Return: how many children ended badly; a failed one lets the others go on. */
static unsigned run(const Contender *contender, const BenchOptions *options, unsigned n_processes,
                    double seconds, Shared *shared) {
        unsigned n_alive = n_processes, n_failed = 0;
        int status;

        for (unsigned i = 0; i < n_processes; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        err(1, "fork");
                if (pid == 0) {
                        child(contender, options, seconds, i, shared, &shared->reports[i]);
                        exit(0);
                }
        }
        while (atomic_load(&shared->n_ready) < n_alive) {
                if (waitpid(-1, &status, WNOHANG) > 0) {
                        n_failed++;
                        n_alive--;
                }
                usleep(1000);
        }
        atomic_store(&shared->go, 1);
        while (n_alive && waitpid(-1, &status, 0) > 0)
                n_failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        return n_failed;
}

static void usage(void) {
        puts("bench [--contender gpuq|own] [--device-data] [--processes N] [--in-flight N] [--n "
             "FLOATS]\n"
             "      [--seconds S] [--socket PATH] [--driver LIB] [--kernels FOLDER]\n"
             "Runs the small job and prints one line of JSON.");
}

typedef struct Arguments {
        BenchOptions options;
        const Contender *contender;
        unsigned n_processes;
        double seconds;
} Arguments;

static void arguments_take(Arguments *arguments, int c, char *value) {
        switch (c) {
                case 'c':
                        arguments->contender =
                                strcmp(value, "own") ? &contender_gpuq : &contender_own;
                        break;
                case 'd':
                        arguments->options.on_device = true;
                        break;
                case 'p':
                        arguments->n_processes = (unsigned)atoi(value);
                        break;
                case 'i':
                        arguments->options.n_slots = (unsigned)atoi(value);
                        break;
                case 'n':
                        arguments->options.n = (size_t)atoll(value);
                        break;
                case 's':
                        arguments->seconds = atof(value);
                        break;
                case 'S':
                        arguments->options.socket = value;
                        break;
                case 'D':
                        arguments->options.driver = value;
                        break;
                case 'k':
                        arguments->options.kernels = value;
                        break;
                default:
                        usage();
                        exit(c == 'h' ? 0 : 2);
        }
}

static void arguments_parse(Arguments *arguments, int argc, char **argv) {
        static const struct option longs[] = {
                {"contender", required_argument, NULL, 'c'},
                {"device-data", no_argument, NULL, 'd'},
                {"processes", required_argument, NULL, 'p'},
                {"in-flight", required_argument, NULL, 'i'},
                {"n", required_argument, NULL, 'n'},
                {"seconds", required_argument, NULL, 's'},
                {"socket", required_argument, NULL, 'S'},
                {"driver", required_argument, NULL, 'D'},
                {"kernels", required_argument, NULL, 'k'},
                {"help", no_argument, NULL, 'h'},
                {0},
        };
        int c;

        *arguments = (Arguments){
                .options = {.driver = "libcuda.so.1", .kernels = ".", .n_slots = 1, .n = 10000},
                .contender = &contender_gpuq,
                .n_processes = 1,
                .seconds = 1,
        };
        while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1)
                arguments_take(arguments, c, optarg);

        if (!arguments->n_processes || arguments->n_processes > PROCESSES_MAX ||
            !arguments->options.n_slots || arguments->options.n_slots > BENCH_SLOTS_MAX ||
            !arguments->options.n)
                errx(2, "processes: 1 to %u, in-flight: 1 to %u, n: at least 1", PROCESSES_MAX,
                     BENCH_SLOTS_MAX);
}

int main(int argc, char **argv) {
        Arguments arguments;
        unsigned n_failed;
        Shared *shared;

        arguments_parse(&arguments, argc, argv);
        shared = mmap(NULL, sizeof(*shared) + arguments.n_processes * sizeof(Report),
                      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                err(1, "mmap");

        n_failed = run(arguments.contender, &arguments.options, arguments.n_processes,
                       arguments.seconds, shared);
        if (n_failed)
                errx(1, "%u of %u processes failed", n_failed, arguments.n_processes);
        print(arguments.contender, &arguments.options, arguments.n_processes, shared);
        return 0;
}
