/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_VERB_H
#define GPUQ_CLI_VERB_H

/*
 * Verb
 *
 * Each verb of gpuq is one file with one const entry, listed in verbs[]. The
 * options that verbs have in common (--json, --socket, --help) are read here.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include <gpuq.h>

#include "exit.h"
#include "problem.h"

typedef struct Cli Cli;

typedef struct Verb {
        const char *name;
        const char *arguments;                       /* for the usage line */
        const char *summary;                         /* one line */
        const char *help;                            /* its own options, and further explanations */
        const char *shorts;                          /* short options, for getopt_long() */
        const struct option *options;                /* ends with VERB_OPTIONS */
        bool long_with_one_dash;                     /* also -name, as nvcc takes its options */
        int (*run)(Cli *cli, int argc, char **argv); /* Return: an exit code */
} Verb;

enum {
        VERB_HELP = 1000,
        VERB_SOCKET,
        VERB_JSON,
        VERB_OWN, /* values of a verb's own long options start here */
};

/* Closes a verb's table of options. */
#define VERB_OPTIONS {"json", no_argument, NULL, VERB_JSON}, VERB_OPTIONS_TEXT
/* That of a verb without --json. */
#define VERB_OPTIONS_TEXT                                                                          \
        {"socket", required_argument, NULL, VERB_SOCKET}, {"help", no_argument, NULL, VERB_HELP},  \
        {                                                                                          \
                NULL                                                                               \
        }

/* One run of gpuq. */
struct Cli {
        const Verb *verb;
        const char *socket; /* NULL: the library's choice */
        gpuq_client *client;
        Problem problem;
        ExitCode code; /* the exit code, if verb_next() returned -1 */
        bool json;
};

extern const Verb verb_status, verb_kernels, verb_run, verb_queue, verb_cancel, verb_wait,
        verb_fetch, verb_history, verb_report, verb_metrics, verb_top, verb_drain, verb_resume,
        verb_explain, verb_trace, verb_doctor;
/** verbs - all of them, in the order of the help; ends with NULL. */
extern const Verb *const verbs[];

/** verb_find() - by name; NULL if there is none. */
const Verb *verb_find(const char *name);
/** verb_nearest() - a verb with a similar name; NULL: there is none. */
const Verb *verb_nearest(const char *name);
/** verb_print_help() - the usage line, the text, and every option. */
void verb_print_help(const Verb *verb, FILE *stream);

/**
 * verb_next() - the verb's next option
 *
 * Return: 1 with the option in @ret_option and its value in optarg, 0 at the end
 * with optind at the first argument, or -1 when the verb ends here with
 * cli->code (its help was shown, or an option is wrong).
 */
int verb_next(Cli *cli, int argc, char **argv, int *ret_option);
/** verb_run_for_job() - a verb whose only argument is a job's id: connect, and call @run. Return: the exit code. */
int verb_run_for_job(Cli *cli, int argc, char **argv, int (*run)(Cli *cli, uint64_t id));
/** cli_usage() - a problem with how gpuq was called. Return: EXIT_USAGE. */
int cli_usage(Cli *cli, const char *format, ...) _printf_(2, 3);
/** cli_option() - an option's value is wrong. @name: such as "--grid". Return: EXIT_USAGE. */
int cli_option(Cli *cli, const char *name, const char *wanted);
/** cli_device() - the value of --device, in optarg. Return: 0 or EXIT_USAGE. */
int cli_device(Cli *cli, int *ret_device);
/** cli_read_slurm_job() - the value of --slurm-job. Return: 0, or EXIT_USAGE. */
int cli_read_slurm_job(Cli *cli, uint32_t *ret_slurm_job);
/** cli_failed() - a call of the library failed: its text becomes the problem. Return: an exit code. */
int cli_failed(Cli *cli, ExitWhen when, int error);
/** cli_no_memory() - Return: an exit code. */
int cli_no_memory(Cli *cli);
/** cli_connect() - open cli->client. Return: 0 or an exit code. */
int cli_connect(Cli *cli);

#endif
