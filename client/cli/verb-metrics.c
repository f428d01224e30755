/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq metrics - the status as OpenMetrics text, printed or served to a monitoring system
 */

#include <string.h>

#include "http.h"
#include "metrics.h"
#include "verb.h"

enum {
        METRICS_LISTEN = VERB_OWN,
};

/* Return: 0 or an exit code. */
static int metrics_print(Cli *cli, FILE *stream) {
        gpuq_status *status = NULL;
        int r;

        r = cli_connect(cli);
        if (r)
                return r;
        r = gpuq_get_status(cli->client, &status);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        r = metrics_write(stream, status);
        gpuq_status_free(status);
        return r < 0 ? cli_no_memory(cli) : 0;
}

static int metrics_answer(FILE *stream, void *userdata) {
        Cli *cli = userdata;
        int r;

        r = metrics_print(cli, stream);
        if (r)
                fprintf(stream, "%s\n", problem_text(&cli->problem));
        gpuq_client_free(cli->client);
        return r;
}

static int metrics_listen(Cli *cli, const char *address) {
        _cleanup_(http_freep) Http *http = NULL;
        int r;

        r = http_new(address, &http);
        if (r == HTTP_E_FORM)
                return cli_usage(cli,
                                 "--listen `%s': expected the path of a socket (with a slash), "
                                 "127.0.0.1:PORT or [::1]:PORT",
                                 address);
        if (r == HTTP_E_EXPOSED)
                return cli_usage(cli,
                                 "--listen `%s': not a loopback address: other machines could read "
                                 "the names and jobs of users, because there is neither encryption "
                                 "nor a password; listen on 127.0.0.1 and let a proxy forward",
                                 address);
        if (r < 0)
                return problem_set(&cli->problem, EXIT_JOB_FAILED, "cannot listen on %s: %s",
                                   address, strerror(-r));

        fprintf(stderr, "gpuq: metrics: listening on %s\n", http_address(http));
        r = http_serve(http, "/metrics", METRICS_TYPE, metrics_answer, cli);
        return r < 0 ? problem_set(&cli->problem, EXIT_JOB_FAILED, "cannot serve: %s", strerror(-r))
                     : 0;
}

static int metrics_run(Cli *cli, int argc, char **argv) {
        const char *address = NULL;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                address = optarg; /* its only option */
        if (r < 0)
                return cli->code;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        return address ? metrics_listen(cli, address) : metrics_print(cli, stdout);
}

static const struct option metrics_options[] = {
        {"listen", required_argument, NULL, METRICS_LISTEN},
        VERB_OPTIONS_TEXT,
};

const Verb verb_metrics = {
        .name = "metrics",
        .arguments = "[OPTION...]",
        .summary = "print or serve the state of gpuqd as OpenMetrics text, for Prometheus",
        .help = "      --listen ADDRESS   serve it by HTTP at /metrics until SIGINT or SIGTERM;\n"
                "                         ADDRESS: a socket's path, 127.0.0.1:PORT or [::1]:PORT\n",
        .shorts = "",
        .options = metrics_options,
        .run = metrics_run,
};
