/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq - the command line of gpuqd
 *
 * Reads the options before the verb, runs the verb, and prints the problem it
 * ended with, if any. Uses the public library alone.
 */

#include <locale.h>
#include <string.h>

#include "verb.h"

enum {
        MAIN_HELP = 'h',
        MAIN_VERSION = 'V',
        MAIN_SOCKET = 's',
};

static void print_help(FILE *stream) {
        fprintf(stream, "Usage: gpuq [--socket PATH] VERB [OPTION...] [ARGUMENT...]\n"
                        "\n"
                        "Run kernels on this machine's shared GPUs, through gpuqd.\n"
                        "\n");
        for (const Verb *const *verb = verbs; *verb; verb++)
                fprintf(stream, "  %-10s %s\n", (*verb)->name, (*verb)->summary);
        fprintf(stream,
                "\n"
                "      --socket PATH      the daemon's socket; default: $GPUQ_SOCKET, "
                "$XDG_RUNTIME_DIR/gpuq.sock\n"
                "                         or /run/gpuq/gpuqd.sock\n"
                "      --help             show this help; `gpuq VERB --help' shows a verb's "
                "options\n"
                "      --version          show the version\n"
                "\n"
                "Exit status: 0 success, 1 job failed, 2 wrong usage, 3 daemon not reachable,\n"
                "4 no such job, 5 denied or over a limit, 124 job timed out. See gpuq(1).\n");
}

static int unknown_verb(const char *name) {
        const Verb *nearest = verb_nearest(name);

        fprintf(stderr, "gpuq: unknown verb `%s'", name);
        if (nearest)
                fprintf(stderr, "; did you mean `%s'?\n", nearest->name);
        else
                fprintf(stderr, "; `gpuq --help' lists the verbs\n");
        return EXIT_USAGE;
}

/* Return: -1 to go on with the verb at optind, or an exit code. */
static int read_options(Cli *cli, int argc, char **argv) {
        static const struct option options[] = {
                {"help", no_argument, NULL, MAIN_HELP},
                {"version", no_argument, NULL, MAIN_VERSION},
                {"socket", required_argument, NULL, MAIN_SOCKET},
                {NULL},
        };
        int option;

        /* "+": options after the verb belong to the verb. */
        while ((option = getopt_long(argc, argv, "+hV", options, NULL)) != -1)
                switch (option) {
                        case MAIN_HELP:
                                print_help(stdout);
                                return EXIT_OK;
                        case MAIN_VERSION:
                                printf("gpuq %s, libgpuq %s\n", GPUQ_VERSION, gpuq_version());
                                return EXIT_OK;
                        case MAIN_SOCKET:
                                cli->socket = optarg;
                                break;
                        default:
                                return EXIT_USAGE;
                }

        if (optind < argc)
                return -1;
        print_help(stderr);
        return EXIT_USAGE;
}

static int run_verb(Cli *cli, int argc, char **argv) {
        int r;

        optind = 0; /* glibc: 0 starts again with other options */
        r = cli->verb->run(cli, argc, argv);
        if (r != EXIT_OK && cli->problem.text)
                fprintf(stderr, "gpuq: %s: %s\n", cli->verb->name, problem_text(&cli->problem));

        gpuq_client_free(cli->client);
        problem_clear(&cli->problem);
        return r;
}

/* A full disk or a closed pipe shows only here. */
static int flush_output(int code) {
        if (fflush(stdout) == 0 && !ferror(stdout))
                return code;

        fprintf(stderr, "gpuq: cannot write the output: %s\n", strerror(errno));
        return code == EXIT_OK ? EXIT_JOB_FAILED : code;
}

int main(int argc, char **argv) {
        Cli cli = {};
        int r;

        /* The character set is for the widths of tables; numbers are formatted as in C. */
        setlocale(LC_CTYPE, "");

        r = read_options(&cli, argc, argv);
        if (r >= 0)
                return flush_output(r);

        cli.verb = verb_find(argv[optind]);
        if (!cli.verb)
                return unknown_verb(argv[optind]);

        r = run_verb(&cli, argc - optind, argv + optind);
        return flush_output(r);
}
