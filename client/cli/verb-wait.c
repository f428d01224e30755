/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq wait - wait for a job of any process; the exit status tells how it ended
 */

#include "result.h"
#include "verb.h"

/* A job that failed returns an error too. Its result distinguishes it from a rejected request. */
static int wait_for(Cli *cli, uint64_t id) {
        gpuq_result result = {.state = GPUQ_PENDING};
        int r;

        r = gpuq_wait_id(cli->client, id, -1, &result);
        if (result.state == GPUQ_PENDING)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        if (cli->json) {
                struct json_object *document = json_document();

                result_json(document, id, &result);
                json_print(document);
        }
        if (result.state == GPUQ_DONE)
                return EXIT_OK;
        r = (int)exit_code(EXIT_WHEN_WAITED, result.error);
        return problem_set(&cli->problem, MAX(r, (int)EXIT_JOB_FAILED), "%s", result.text);
}

static int wait_run(Cli *cli, int argc, char **argv) {
        return verb_run_for_job(cli, argc, argv, wait_for);
}

static const struct option wait_options[] = {VERB_OPTIONS};

const Verb verb_wait = {
        .name = "wait",
        .arguments = "[OPTION...] ID",
        .summary = "wait for a job; the exit status tells how it ended",
        .help = "",
        .shorts = "",
        .options = wait_options,
        .run = wait_run,
};
