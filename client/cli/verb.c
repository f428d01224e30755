/* SPDX-License-Identifier: Apache-2.0 */
#include "verb.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "number.h"
#include "util/near.h"

const Verb *const verbs[] = {
        &verb_status,  &verb_top,    &verb_kernels, &verb_run,    &verb_queue,   &verb_explain,
        &verb_trace,   &verb_cancel, &verb_wait,    &verb_fetch,  &verb_history, &verb_report,
        &verb_metrics, &verb_drain,  &verb_resume,  &verb_doctor, NULL,
};

const Verb *verb_find(const char *name) {
        for (const Verb *const *verb = verbs; *verb; verb++)
                if (strcmp((*verb)->name, name) == 0)
                        return *verb;
        return NULL;
}

const Verb *verb_nearest(const char *name) {
        Near near = near_to(name);

        for (const Verb *const *verb = verbs; *verb; verb++)
                near_offer(&near, (*verb)->name);
        return near.found ? verb_find(near.found) : NULL;
}

static bool option_is_long(const Verb *verb, int value) {
        for (const struct option *option = verb->options; option->name; option++)
                if (option->val == value)
                        return true;
        return false;
}

void verb_print_help(const Verb *verb, FILE *stream) {
        fprintf(stream,
                "Usage: gpuq %s %s\n"
                "\n"
                "%s\n"
                "\n"
                "%s%s"
                "      --socket PATH      the daemon's socket\n"
                "      --help             show this help\n",
                verb->name, verb->arguments, verb->summary, verb->help,
                option_is_long(verb, VERB_JSON) ? "      --json             print one JSON object; "
                                                  "gpuq(1) lists its members\n"
                                                : "");
}

int cli_usage(Cli *cli, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list args;
        int r;

        va_start(args, format);
        r = vasprintf(&text, format, args);
        va_end(args);
        if (r < 0) {
                text = NULL;
                return EXIT_USAGE;
        }

        return problem_set(&cli->problem, EXIT_USAGE, "%s\nUsage: gpuq %s %s", text,
                           cli->verb->name, cli->verb->arguments);
}

int cli_option(Cli *cli, const char *name, const char *wanted) {
        return cli_usage(cli, "%s `%s': expected %s", name, optarg, wanted);
}

int cli_device(Cli *cli, int *ret_device) {
        uint64_t device;

        if (number_unsigned(optarg, INT32_MAX - 1, &device) < 0)
                return cli_option(cli, "--device",
                                  "a device number; `gpuq status' lists the devices");
        *ret_device = (int)device;
        return 0;
}

int cli_read_slurm_job(Cli *cli, uint32_t *ret_slurm_job) {
        uint64_t number;

        if (number_unsigned(optarg, UINT32_MAX, &number) < 0 || number == 0)
                return cli_option(cli, "--slurm-job", "the number of a job of Slurm");
        *ret_slurm_job = (uint32_t)number;
        return 0;
}

int cli_failed(Cli *cli, ExitWhen when, int error) {
        return problem_set(&cli->problem, (int)exit_code(when, error), "%s", gpuq_error_text());
}

int cli_no_memory(Cli *cli) {
        return problem_set(&cli->problem, EXIT_JOB_FAILED, "this process is out of memory");
}

int cli_connect(Cli *cli) {
        int r;

        r = gpuq_connect(cli->socket, &cli->client);
        return r < 0 ? cli_failed(cli, EXIT_WHEN_ASKED, r) : 0;
}

static void option_unknown(Cli *cli, const char *word, int length) {
        int n_dashes = (int)strspn(word, "-");
        _cleanup_(freep) char *name = strndup(word + n_dashes, (size_t)(length - n_dashes));
        Near near = near_to(name ? name : "");

        for (const struct option *option = cli->verb->options; option->name; option++)
                near_offer(&near, option->name);
        if (near.found)
                cli_usage(cli, "unknown option `%.*s'; did you mean `--%s'?", length, word,
                          near.found);
        else
                cli_usage(cli, "unknown option `%.*s'", length, word);
}

static bool word_is_long(const Cli *cli, const char *word) {
        return strncmp(word, "--", 2) == 0 ||
               (cli->verb->long_with_one_dash && word[0] == '-' && word[1] && word[2]);
}

/*
 * getopt_long() reports only optopt: a long option's value, a short option's letter, or 0. After a
 * wrong letter that others follow, @word is not the one that has it.
 */
static void option_wrong(Cli *cli, int kind, const char *word) {
        bool is_letter = optopt > 0 && optopt < VERB_HELP && !option_is_long(cli->verb, optopt);
        int length = (int)strcspn(word, "=");

        if (kind == '?' && is_letter)
                cli_usage(cli, "unknown option `-%c'", optopt);
        else if (kind == ':' && word_is_long(cli, word))
                cli_usage(cli, "option `%s' needs a value", word);
        else if (kind == ':')
                cli_usage(cli, "option `-%c' needs a value", optopt);
        else if (optopt)
                cli_usage(cli, "option `%.*s' takes no value", length, word);
        else
                option_unknown(cli, word, length);
}

static int verb_stop(Cli *cli, ExitCode code) {
        cli->code = code;
        return -1;
}

int verb_next(Cli *cli, int argc, char **argv, int *ret_option) {
        char shorts[32] = ":";
        int option;

        opterr = 0;
        strncat(shorts, cli->verb->shorts, sizeof(shorts) - 2);
        for (;;) {
                option = cli->verb->long_with_one_dash
                                 ? getopt_long_only(argc, argv, shorts, cli->verb->options, NULL)
                                 : getopt_long(argc, argv, shorts, cli->verb->options, NULL);
                switch (option) {
                        case -1:
                                return 0;
                        case VERB_JSON:
                                cli->json = true;
                                break;
                        case VERB_SOCKET:
                                cli->socket = optarg;
                                break;
                        case VERB_HELP:
                                verb_print_help(cli->verb, stdout);
                                return verb_stop(cli, EXIT_OK);
                        case '?':
                        case ':':
                                option_wrong(cli, option, argv[optind - 1]);
                                return verb_stop(cli, EXIT_USAGE);
                        default:
                                *ret_option = option;
                                return 1;
                }
        }
}

int verb_run_for_job(Cli *cli, int argc, char **argv, int (*run)(Cli *cli, uint64_t id)) {
        uint64_t id;
        int option, r;

        r = verb_next(cli, argc, argv, &option);
        if (r < 0)
                return cli->code;
        if (argc - optind != 1)
                return cli_usage(cli, "expected one job id");
        if (gpuq_id_parse(argv[optind], &id) < 0)
                return cli_usage(cli, "`%s' is not a job id; `gpuq queue' lists them",
                                 argv[optind]);
        r = cli_connect(cli);
        return r ? r : run(cli, id);
}
