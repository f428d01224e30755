/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq explain - where a job's time went, and what would help it most
 */

#include "explain.h"
#include "json.h"
#include "table.h"
#include "verb.h"

static void explain_json_times(struct json_object *document, const char *name,
                               const gpuq_job_times *times) {
        struct json_object *object = json_member(document, name);

        json_number(object, "dependencies_us", times->dependencies_us);
        json_number(object, "module_us", times->module_us);
        json_number(object, "queue_us", times->queue_us);
        json_number(object, "launch_us", times->launch_us);
        json_number(object, "ran_us", times->ran_us);
        json_number(object, "moved_bytes", times->moved_bytes);
        json_number(object, "gpu_ns", times->gpu_ns);
}

static void explain_print_json(const gpuq_explanation *explanation) {
        struct json_object *document = json_document();

        json_id(document, "id", explanation->id);
        json_number(document, "uid", explanation->uid);
        json_text(document, "state", explanation->state);
        json_text(document, "label", explanation->label);
        json_text(document, "kernel", explanation->kernel);
        json_text(document, "reason", explanation->reason);
        json_signed(document, "device", explanation->device);
        explain_json_times(document, "times", &explanation->times);
        explain_json_times(document, "median", &explanation->median);
        json_number(document, "n_median", explanation->n_median);
        json_number(document, "n_beside", explanation->n_beside);
        json_text(document, "advice", explanation->advice);
        json_print(document);
}

static int explain_job(Cli *cli, uint64_t id) {
        gpuq_explanation *explanation = NULL;
        int r;

        r = gpuq_explain(cli->client, id, &explanation);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        if (cli->json)
                explain_print_json(explanation);
        else
                r = explain_write(stdout, explanation, table_terminal());
        gpuq_explanation_free(explanation);
        return r < 0 ? cli_no_memory(cli) : EXIT_OK;
}

static int explain_run(Cli *cli, int argc, char **argv) {
        return verb_run_for_job(cli, argc, argv, explain_job);
}

static const struct option explain_options[] = {VERB_OPTIONS};

const Verb verb_explain = {
        .name = "explain",
        .arguments = "[OPTION...] ID",
        .summary = "show where a job's time went, and what would help it most",
        .help = "",
        .shorts = "",
        .options = explain_options,
        .run = explain_run,
};
