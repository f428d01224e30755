/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq drain, gpuq resume - take a device out of service, and give it back
 */

#include <limits.h>

#include "json.h"
#include "number.h"
#include "verb.h"

enum {
        DRAIN_REASON = VERB_OWN,
};

/* Return: 0, or an exit code. */
static int drain_read_device(Cli *cli, int argc, char **argv, unsigned *ret_device) {
        uint64_t device;

        if (argc - optind != 1)
                return cli_usage(cli, "expected one device number");
        if (number_unsigned(argv[optind], UINT_MAX, &device) < 0)
                return cli_usage(cli,
                                 "`%s' is not a device number; `gpuq status' lists the devices",
                                 argv[optind]);
        *ret_device = (unsigned)device;
        return 0;
}

static void drain_print(const Cli *cli, unsigned device, unsigned n_running) {
        if (cli->json) {
                struct json_object *document = json_document();

                json_number(document, "device", device);
                json_number(document, "running", n_running);
                json_print(document);
                return;
        }
        printf("device %u is drained", device);
        if (n_running)
                printf("; %u %s still running on it", n_running,
                       n_running == 1 ? "job is" : "jobs are");
        printf("\n");
}

static int drain_run(Cli *cli, int argc, char **argv) {
        const char *reason = NULL;
        unsigned device;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                reason = optarg; /* its only option */
        if (r < 0)
                return cli->code;
        r = drain_read_device(cli, argc, argv, &device);
        if (r)
                return r;

        r = cli_connect(cli);
        if (r)
                return r;
        r = gpuq_drain(cli->client, device, reason);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_RUN, r);
        drain_print(cli, device, (unsigned)r);
        return EXIT_OK;
}

static void resume_print(const Cli *cli, unsigned device, bool was_drained) {
        if (cli->json) {
                struct json_object *document = json_document();

                json_number(document, "device", device);
                json_truth(document, "was_drained", was_drained);
                json_print(document);
                return;
        }
        printf("device %u %s\n", device,
               was_drained ? "accepts jobs again" : "was not drained; it accepts jobs");
}

static int resume_run(Cli *cli, int argc, char **argv) {
        unsigned device;
        int option, r;

        r = verb_next(cli, argc, argv, &option);
        if (r < 0)
                return cli->code;
        r = drain_read_device(cli, argc, argv, &device);
        if (r)
                return r;

        r = cli_connect(cli);
        if (r)
                return r;
        r = gpuq_resume(cli->client, device);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_RUN, r);
        resume_print(cli, device, r > 0);
        return EXIT_OK;
}

static const struct option drain_options[] = {
        {"reason", required_argument, NULL, DRAIN_REASON},
        VERB_OPTIONS,
};

const Verb verb_drain = {
        .name = "drain",
        .arguments = "[--reason TEXT] DEVICE",
        .summary = "stop new jobs on a device; root and the admin group only",
        .help = "      --reason TEXT      a reason, for `gpuq status' and `gpuq queue'\n",
        .shorts = "",
        .options = drain_options,
        .run = drain_run,
};

static const struct option resume_options[] = {VERB_OPTIONS};

const Verb verb_resume = {
        .name = "resume",
        .arguments = "[OPTION...] DEVICE",
        .summary = "let a drained device accept jobs; root and the admin group only",
        .help = "",
        .shorts = "",
        .options = resume_options,
        .run = resume_run,
};
