/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq drain, gpuq resume - take a device out of service, and give it back
 */

#include <limits.h>
#include <string.h>

#include "proto/text.h"
#include "json.h"
#include "number.h"
#include "verb.h"

enum {
        DRAIN_REASON = VERB_OWN,
};

typedef struct DrainState {
        bool by_admin;  /* an administrator drained it */
        char text[512]; /* such as "drained by root: a new fan"; "": there is no such device */
} DrainState;

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

/* What the status says of the device. Return: 0, or an exit code. */
static int drain_get(Cli *cli, unsigned device, DrainState *ret_state) {
        gpuq_status *status;
        int r;

        r = gpuq_get_status(cli->client, &status);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);
        *ret_state = (DrainState){0};
        for (size_t i = 0; i < status->n_devices; i++) {
                const gpuq_device_status *found = &status->devices[i];

                if (found->index != device)
                        continue;
                ret_state->by_admin = found->drained && strcmp(found->drained, "admin") == 0;
                snprintf(ret_state->text, sizeof(ret_state->text), "%s", found->state);
                text_clean_line(ret_state->text);
        }
        gpuq_status_free(status);
        return 0;
}

static void drain_print_json(unsigned device, unsigned n_running, const DrainState *before,
                             const DrainState *after) {
        struct json_object *document = json_document();

        json_number(document, "device", device);
        json_number(document, "running", n_running);
        json_truth(document, "was_drained", before->by_admin);
        json_text(document, "state", after->text);
        json_print(document);
}

static void drain_print(unsigned device, unsigned n_running, const DrainState *before,
                        const DrainState *after) {
        if (!before->by_admin)
                printf("device %u is drained", device);
        else if (strcmp(before->text, after->text) == 0)
                printf("device %u was drained already and stays %s", device, after->text);
        else
                printf("device %u is now %s; until now it was %s", device, after->text,
                       before->text);
        if (n_running)
                printf("; %u %s still running on it", n_running,
                       n_running == 1 ? "job is" : "jobs are");
        printf("\n");
}

static int drain_device(Cli *cli, unsigned device, const char *reason) {
        DrainState before, after;
        int n_running, r;

        r = drain_get(cli, device, &before);
        if (r)
                return r;
        n_running = gpuq_drain(cli->client, device, reason);
        if (n_running < 0)
                return cli_failed(cli, EXIT_WHEN_RUN, n_running);
        r = drain_get(cli, device, &after);
        if (r)
                return r;
        if (cli->json)
                drain_print_json(device, (unsigned)n_running, &before, &after);
        else
                drain_print(device, (unsigned)n_running, &before, &after);
        return EXIT_OK;
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
        return r ? r : drain_device(cli, device, reason);
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
        .help = "      --reason TEXT      a reason, for `gpuq status' and `gpuq queue'; without "
                "it\n"
                "                         that of an earlier drain stays\n",
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
