/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq-bench: its arguments.
 */

#include "bench.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"

static const char *const data_names[_BENCH_DATA_N] = {
        [BENCH_COPIES] = "copies",
        [BENCH_IN_PLACE] = "in-place",
        [BENCH_DEVICE] = "device",
};

const char *bench_data_name(BenchData data) {
        return data_names[data];
}

static const char usage_text[] =
        "gpuq-bench [OPTION...] [DATA/IN-FLIGHT[/SECONDS]...]\n"
        "Runs c = a + b from many processes and prints a line of JSON for each phase (copies/1).\n"
        "\n"
        "  DATA  copies, in-place or device\n"
        "  --contender own|gpuq|prepared  contexts of their own, the service, its prepared jobs\n"
        "  --processes N         (1)\n"
        "  --n FLOATS            (10000)\n"
        "  --launches N          in one job, each adding b again (1)\n"
        "  --spin-us N           the job takes so long, on --blocks N (1056) blocks of 256\n"
        "  --streams N           own: for all jobs of a process (one for each in flight)\n"
        "  --burst               one job a process, from the first fork to the last result\n"
        "  --cold                without a round of jobs before the clock runs\n"
        "  --hold                wait for a line of stdin before each phase, and before the end\n"
        "  --socket PATH, --driver LIBRARY, --kernels FOLDER, --spins FOLDER\n";

static void usage(FILE *file, int status) {
        fputs(usage_text, file);
        exit(status);
}

static unsigned long number_parse(const char *text, unsigned long max) {
        char *end = NULL;
        unsigned long value = strtoul(text, &end, 10);

        if (end == text || *end != '\0' || value < 1 || value > max)
                errx(2, "%s: a number from 1 to %lu is expected", text, max);
        return value;
}

static const Contender *contender_parse(const char *name) {
        if (strcmp(name, "own") == 0)
                return &contender_own;
        if (strcmp(name, "gpuq") == 0)
                return &contender_gpuq;
        if (strcmp(name, "prepared") == 0)
                return &contender_prepared;
        errx(2, "%s: contenders are gpuq, prepared and own", name);
}

static void phase_parse(const char *text, CrewPhase *ret_phase) {
        char name[16];
        double seconds = 1;
        unsigned n = 0;

        if (sscanf(text, "%15[^/]/%u/%lf", name, &n, &seconds) < 2 || n < 1 || n > BENCH_SLOTS_MAX)
                errx(2, "%s: DATA/IN-FLIGHT is expected, with at most %u in flight", text,
                     BENCH_SLOTS_MAX);
        for (BenchData data = 0; data < _BENCH_DATA_N; data++)
                if (strcmp(name, data_names[data]) == 0) {
                        *ret_phase = (CrewPhase){data, n, seconds};
                        return;
                }
        errx(2, "%s: data is copies, in-place or device", text);
}

static void option_take(CrewOptions *options, bool *burst, int c, char *value) {
        switch (c) {
                case 'c':
                        options->contender = contender_parse(value);
                        return;
                case 'p':
                        options->n_processes = (unsigned)number_parse(value, BENCH_PROCESSES_MAX);
                        return;
                case 'n':
                        options->bench.n = number_parse(value, 1ul << 30);
                        return;
                case 'l':
                        options->bench.n_launches = (unsigned)number_parse(value, 16);
                        return;
                case 'u':
                        options->bench.spin_ns = number_parse(value, 60000000) * 1000;
                        return;
                case 'b':
                        options->bench.n_blocks = (unsigned)number_parse(value, 1u << 20);
                        return;
                case 't':
                        options->bench.n_streams = (unsigned)number_parse(value, BENCH_SLOTS_MAX);
                        return;
                case 'B':
                        *burst = true;
                        return;
                case 'C':
                        options->cold = true;
                        return;
                case 'H':
                        options->hold = true;
                        return;
                case 'S':
                        options->bench.socket = value;
                        return;
                case 'D':
                        options->bench.driver = value;
                        return;
                case 'k':
                        options->bench.kernels = value;
                        return;
                case 's':
                        options->bench.spins = value;
                        return;
                default:
                        usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
        }
}

static void phases_parse(CrewOptions *options, char **texts, int n) {
        if (n < 1 || n > BENCH_PHASES_MAX)
                errx(2, "1 to %d phases are expected; see --help", BENCH_PHASES_MAX);
        for (int i = 0; i < n; i++) {
                CrewPhase *phase = &options->phases[options->n_phases++];

                phase_parse(texts[i], phase);
                if (phase->n_in_flight > options->bench.n_slots)
                        options->bench.n_slots = phase->n_in_flight;
        }
        if (options->bench.spin_ns && options->bench.n_launches > 1)
                errx(2, "a spin is one launch");
}

static void options_parse(CrewOptions *options, bool *burst, int argc, char **argv) {
        static const struct option names[] = {
                {"contender", required_argument, NULL, 'c'},
                {"processes", required_argument, NULL, 'p'},
                {"n", required_argument, NULL, 'n'},
                {"launches", required_argument, NULL, 'l'},
                {"spin-us", required_argument, NULL, 'u'},
                {"blocks", required_argument, NULL, 'b'},
                {"streams", required_argument, NULL, 't'},
                {"burst", no_argument, NULL, 'B'},
                {"cold", no_argument, NULL, 'C'},
                {"hold", no_argument, NULL, 'H'},
                {"socket", required_argument, NULL, 'S'},
                {"driver", required_argument, NULL, 'D'},
                {"kernels", required_argument, NULL, 'k'},
                {"spins", required_argument, NULL, 's'},
                {"help", no_argument, NULL, 'h'},
                {0},
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", names, NULL)) != -1)
                option_take(options, burst, c, optarg);
        phases_parse(options, argv + optind, argc - optind);
}

int main(int argc, char **argv) {
        CrewOptions options = {
                /* 8 blocks of 256 threads fill each of the 132 multiprocessors of an H200 */
                .bench = {.driver = "libcuda.so.1",
                          .kernels = ".",
                          .spins = ".",
                          .n = 10000,
                          .n_launches = 1,
                          .n_blocks = 1056},
                .contender = &contender_gpuq,
                .n_processes = 1,
        };
        bool burst = false;

        options_parse(&options, &burst, argc, argv);
        options.bench.crowded = (long)options.n_processes >= sysconf(_SC_NPROCESSORS_ONLN);
        if (burst)
                crew_burst(&options);
        else
                crew_run(&options);
        return 0;
}
