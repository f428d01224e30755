/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuq-demo: the job people ask for
 *
 * Many processes, each with numbers of its own, each asking the GPU for the sum
 * of their squares. Every process is forked before anything is connected, so
 * nothing is shared but the daemon, and every answer is checked here on the CPU.
 */

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gpuq.h>

#include "util/macro.h"

#define DEMO_N_VALUES    10000u
#define DEMO_N_PROCESSES 100u
#define DEMO_N_MAX       10000u
#define DEMO_TOLERANCE   1e-12
#define DEMO_WARM_UP     UINT32_MAX /* the number of the process that asks first, and is not counted */

typedef struct Options {
        const char *socket;
        unsigned n_processes;
} Options;

/* What a process writes to the pipe, in one piece: smaller than PIPE_BUF. */
typedef struct Report {
        uint32_t number;
        int32_t error; /* 0, or a GPUQ_E_ */
        int32_t device;
        double value;
        char text[400];
} Report;

typedef struct Tally {
        unsigned n_right;
        unsigned n_told; /* mistakes shown in full: the first few say enough */
        int device;      /* of the first right answer */
        double seconds;
} Tally;

static void usage(FILE *file) {
        fprintf(file,
                "usage: gpuq-demo [--socket PATH] [PROCESSES]\n"
                "\n"
                "Forks PROCESSES processes (%u), each with its own %u float64 values, which ask\n"
                "gpuqd for the sum of their squares, and checks each answer on the CPU.\n"
                "\n"
                "Before that one process runs a job, so that the worker has created its context\n"
                "and loaded the kernels. The time is from the first fork to the last answer.\n"
                "Exits 0 only if all answers are right.\n",
                DEMO_N_PROCESSES, DEMO_N_VALUES);
}

/* ---- the numbers ----------------------------------------------------------------- */

/* splitmix64: every number of a process gives a sequence of its own. */
static double demo_next(uint64_t *state) {
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        return (double)(z >> 11) * 0x1p-52 - 1.0; /* -1 to 1 */
}

static void demo_fill(uint32_t number, double *values) {
        uint64_t state = (uint64_t)number << 32;

        for (size_t i = 0; i < DEMO_N_VALUES; i++)
                values[i] = demo_next(&state);
}

static double demo_expected(uint32_t number) {
        uint64_t state = (uint64_t)number << 32;
        long double sum = 0;

        for (size_t i = 0; i < DEMO_N_VALUES; i++) {
                double value = demo_next(&state);

                sum += (long double)value * value;
        }
        return (double)sum;
}

/* ---- one process ----------------------------------------------------------------- */

typedef struct Asker {
        gpuq_client *client;
        gpuq_module *module;
        gpuq_buffer *values, *sum;
        gpuq_job *job;
} Asker;

static void asker_free(Asker *asker) {
        gpuq_job_free(asker->job);
        gpuq_buffer_free(asker->sum);
        gpuq_buffer_free(asker->values);
        gpuq_module_free(asker->module);
        gpuq_client_free(asker->client);
}

static int asker_run(Asker *asker, const char *socket, uint32_t number) {
        gpuq_config config = {.grid = {1}, .block = {256}};
        gpuq_arg args[3];
        int r;

        if ((r = gpuq_connect(socket, &asker->client)) < 0 ||
            (r = gpuq_module_builtin(asker->client, &asker->module)) < 0 ||
            (r = gpuq_buffer_new(asker->client, DEMO_N_VALUES * sizeof(double), &asker->values)) <
                    0 ||
            (r = gpuq_buffer_new(asker->client, sizeof(double), &asker->sum)) < 0 ||
            (r = gpuq_job_new(asker->client, &asker->job)) < 0)
                return r;

        demo_fill(number, gpuq_buffer_data(asker->values));
        args[0] = gpuq_in(asker->values);
        args[1] = gpuq_out(asker->sum);
        args[2] = gpuq_u64(DEMO_N_VALUES);
        r = gpuq_job_launch(asker->job, asker->module, "sum_of_squares_f64", &config, args,
                            ARRAY_SIZE(args));
        if (r < 0)
                return r;

        return gpuq_run(asker->job);
}

static int child_main(const Options *options, uint32_t number, int pipe_fd) {
        Report report = {.number = number, .device = -1};
        gpuq_result result;
        Asker asker = {0};

        report.error = asker_run(&asker, options->socket, number);
        if (report.error < 0)
                snprintf(report.text, sizeof(report.text), "%s", gpuq_error_text());
        else
                report.value = *(const double *)gpuq_buffer_data(asker.sum);
        if (report.error == 0 && gpuq_job_get_result(asker.job, &result) == 0)
                report.device = result.device;

        asker_free(&asker);
        return write(pipe_fd, &report, sizeof(report)) == sizeof(report) ? 0 : 1;
}

/* ---- all of them ------------------------------------------------------------------- */

static double now_seconds(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void report_check(const Report *report, Tally *tally) {
        double expected = demo_expected(report->number);

        if (report->error == 0 && fabs(report->value - expected) <= DEMO_TOLERANCE * expected) {
                if (tally->n_right++ == 0)
                        tally->device = report->device;
                return;
        }

        if (tally->n_told++ >= 3)
                return;
        if (report->number == DEMO_WARM_UP)
                fprintf(stderr, "gpuq-demo: before the others: ");
        else
                fprintf(stderr, "gpuq-demo: process %u: ", report->number);
        if (report->error < 0)
                fprintf(stderr, "%s: %s\n", gpuq_error_name(report->error), report->text);
        else
                fprintf(stderr, "got %.17g, right is %.17g\n", report->value, expected);
}

static int demo_fork(const Options *options, uint32_t number, const int fds[static 2]) {
        pid_t pid = fork();

        if (pid < 0)
                return -errno;
        if (pid > 0)
                return 0;

        close(fds[0]);
        _exit(child_main(options, number, fds[1]));
}

/* Return: how many reports came before the last process had ended. */
static unsigned demo_collect(int fd, Report *reports, unsigned n_max) {
        unsigned n = 0;

        while (n < n_max) {
                ssize_t n_read = read(fd, &reports[n], sizeof(*reports));

                if (n_read < 0 && errno == EINTR)
                        continue;
                if (n_read != sizeof(*reports))
                        break;
                n++;
        }
        return n;
}

static void demo_reap(void) {
        while (wait(NULL) > 0 || errno == EINTR)
                ;
}

static int demo_round(const Options *options, uint32_t first, unsigned n, Tally *ret_tally) {
        _cleanup_(freep) Report *reports = NULL;
        Tally tally = {.device = -1};
        unsigned n_reports, n_forked;
        double start;
        int fds[2], r = 0;

        reports = calloc(n, sizeof(*reports));
        if (!reports)
                return -ENOMEM;
        if (pipe(fds) < 0)
                return -errno;

        start = now_seconds();
        for (n_forked = 0; n_forked < n && r == 0; n_forked++)
                r = demo_fork(options, first + n_forked, fds);
        close(fds[1]);

        n_reports = demo_collect(fds[0], reports, n);
        tally.seconds = now_seconds() - start;
        close(fds[0]);
        demo_reap();
        if (r < 0)
                return r;

        /* The CPU's own sums are made after the clock was read. */
        for (unsigned i = 0; i < n_reports; i++)
                report_check(&reports[i], &tally);
        *ret_tally = tally;
        return 0;
}

/* ---- what the daemon says ------------------------------------------------------------ */

static void demo_print(const Options *options, const Tally *tally, const gpuq_status *status) {
        const char *device = status->n_devices > 0 ? status->devices[0].name : "no device";
        uint64_t memory = 0;
        unsigned n_contexts = 0;

        for (size_t i = 0; i < status->n_devices; i++)
                if ((int)status->devices[i].index == tally->device)
                        device = status->devices[i].name;
        for (size_t i = 0; i < status->n_workers; i++) {
                n_contexts += status->workers[i].contexts;
                memory += status->workers[i].memory;
        }

        printf("%u of %u jobs right in %.2f s on %s: %u GPU context%s, %llu MiB of GPU memory\n",
               tally->n_right, options->n_processes, tally->seconds, device, n_contexts,
               n_contexts == 1 ? "" : "s", (unsigned long long)((memory + (1u << 19)) >> 20));
}

/* Workers tell what they hold when they fall idle, a moment after their last job has ended. A spare
 * worker has had no job, and may hold nothing. */
static bool demo_settled(const gpuq_status *status) {
        for (size_t i = 0; i < status->n_workers; i++) {
                const gpuq_worker_status *worker = &status->workers[i];

                if (strcmp(worker->state, "busy") == 0 ||
                    (!worker->memory && strcmp(worker->state, "spare") != 0))
                        return false;
        }
        return status->n_workers > 0;
}

static int demo_status(const char *socket, gpuq_status **ret_status) {
        gpuq_client *client = NULL;
        int r;

        r = gpuq_connect(socket, &client);
        if (r < 0)
                return r;

        for (unsigned i = 0; i < 200; i++) {
                r = gpuq_get_status(client, ret_status);
                if (r < 0 || demo_settled(*ret_status))
                        break;
                if (i < 199)
                        gpuq_status_free(*ret_status);
                poll(NULL, 0, 10);
        }

        gpuq_client_free(client);
        return r;
}

static int demo_run(const Options *options) {
        gpuq_status *status = NULL;
        Tally tally;
        int r;

        r = demo_round(options, DEMO_WARM_UP, 1, &tally);
        if (r == 0 && tally.n_right != 1)
                return EXIT_FAILURE; /* it said why */
        if (r == 0)
                r = demo_round(options, 0, options->n_processes, &tally);
        if (r < 0) {
                fprintf(stderr, "gpuq-demo: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }

        if (demo_status(options->socket, &status) < 0) {
                fprintf(stderr, "gpuq-demo: %s\n", gpuq_error_text());
                return EXIT_FAILURE;
        }

        demo_print(options, &tally, status);
        gpuq_status_free(status);
        return tally.n_right == options->n_processes ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Return: whether to go on; if not, @ret_status is what to exit with. */
static bool options_parse(int argc, char **argv, Options *options, int *ret_status) {
        static const struct option names[] = {
                {"socket", required_argument, NULL, 's'},
                {"help", no_argument, NULL, 'h'},
                {0},
        };
        char *end = NULL;
        int c;

        *ret_status = 2;
        while ((c = getopt_long(argc, argv, "s:h", names, NULL)) >= 0) {
                if (c == 's') {
                        options->socket = optarg;
                        continue;
                }
                *ret_status = c == 'h' ? EXIT_SUCCESS : 2;
                usage(c == 'h' ? stdout : stderr);
                return false;
        }

        if (optind < argc) {
                unsigned long n = strtoul(argv[optind], &end, 10);

                if (*end != '\0' || n == 0 || n > DEMO_N_MAX || optind + 1 < argc) {
                        fprintf(stderr, "gpuq-demo: PROCESSES is one number from 1 to %u\n",
                                DEMO_N_MAX);
                        return false;
                }
                options->n_processes = (unsigned)n;
        }
        return true;
}

int main(int argc, char **argv) {
        Options options = {.n_processes = DEMO_N_PROCESSES};
        int status;

        if (!options_parse(argc, argv, &options, &status))
                return status;

        return demo_run(&options);
}
