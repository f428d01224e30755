/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq cancel - end jobs of any process of this user, or of anybody for an admin
 */

#include <inttypes.h>

#include "json.h"
#include "verb.h"

enum {
        CANCEL_ALL = VERB_OWN,
        CANCEL_SLURM_JOB,
};

typedef enum CancelOutcome {
        CANCEL_ENDED,
        CANCEL_UNKNOWN,
        CANCEL_DENIED,
} CancelOutcome;

static const char *const outcome_words[] = {
        [CANCEL_ENDED] = "cancelled", [CANCEL_UNKNOWN] = "unknown", [CANCEL_DENIED] = "denied"};

static int cancel_read_ids(Cli *cli, char **words, size_t n_ids, uint64_t *ids) {
        for (size_t i = 0; i < n_ids; i++)
                if (gpuq_id_parse(words[i], &ids[i]) < 0)
                        return cli_usage(cli, "`%s' is not a job id; `gpuq queue' lists them",
                                         words[i]);
        return 0;
}

/* One call per id: the reply has only counts, but each job needs its own message. */
static int cancel_one(Cli *cli, uint64_t id, CancelOutcome *ret_outcome) {
        gpuq_cancelled cancelled = {};
        int r;

        r = gpuq_cancel_ids(cli->client, &id, 1, &cancelled);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        *ret_outcome = cancelled.n_denied    ? CANCEL_DENIED
                       : cancelled.n_unknown ? CANCEL_UNKNOWN
                                             : CANCEL_ENDED;
        return 0;
}

static void cancel_report(uint64_t id, CancelOutcome outcome) {
        char text[24];

        gpuq_id_format(id, text);
        if (outcome == CANCEL_ENDED)
                printf("%s cancelled\n", text);
        else if (outcome == CANCEL_UNKNOWN)
                fprintf(stderr, "gpuq: cancel: %s: no such job\n", text);
        else
                fprintf(stderr,
                        "gpuq: cancel: %s: permission denied: the job belongs to another user\n",
                        text);
}

static void cancel_report_json(struct json_object *array, uint64_t id, CancelOutcome outcome) {
        struct json_object *object = json_array_object(array);

        json_id(object, "id", id);
        json_text(object, "outcome", outcome_words[outcome]);
}

static ExitCode cancel_exit(const size_t counts[3]) {
        if (counts[CANCEL_DENIED])
                return EXIT_DENIED;
        return counts[CANCEL_UNKNOWN] ? EXIT_NO_JOB : EXIT_OK;
}

static void cancel_print_json(struct json_object *document, const size_t counts[3]) {
        json_number(document, "ended", counts[CANCEL_ENDED]);
        json_number(document, "unknown", counts[CANCEL_UNKNOWN]);
        json_number(document, "denied", counts[CANCEL_DENIED]);
        json_print(document);
}

/* A job that cannot be cancelled does not prevent cancelling the others. */
static int cancel_ids(Cli *cli, const uint64_t *ids, size_t n_ids) {
        struct json_object *document = json_document();
        struct json_object *array = json_array(document, "jobs");
        size_t counts[3] = {}, n_told = 0;
        int r = 0, failed;

        for (size_t i = 0; i < n_ids; i++) {
                CancelOutcome outcome = CANCEL_UNKNOWN;

                failed = cancel_one(cli, ids[i], &outcome);
                if (failed) {
                        r = failed;
                        continue;
                }
                counts[outcome]++;
                n_told++;
                if (cli->json)
                        cancel_report_json(array, ids[i], outcome);
                else
                        cancel_report(ids[i], outcome);
        }

        if (cli->json && (r == 0 || n_told))
                cancel_print_json(document, counts);
        else
                json_object_put(document);
        return r ? r : (int)cancel_exit(counts);
}

/* @slurm_job 0: all of this user. */
static int cancel_many(Cli *cli, uint32_t slurm_job) {
        gpuq_cancelled cancelled = {};
        int r;

        r = slurm_job ? gpuq_cancel_slurm_job(cli->client, slurm_job, &cancelled)
                      : gpuq_cancel_ids(cli->client, NULL, 0, &cancelled);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        if (cli->json) {
                struct json_object *document = json_document();

                json_array(document, "jobs");
                cancel_print_json(document, (size_t[]){cancelled.n_ended, cancelled.n_unknown,
                                                       cancelled.n_denied});
        } else {
                printf("%zu %s cancelled\n", cancelled.n_ended,
                       cancelled.n_ended == 1 ? "job" : "jobs");
        }
        return EXIT_OK;
}

static int cancel_run(Cli *cli, int argc, char **argv) {
        _cleanup_(freep) uint64_t *ids = NULL;
        uint32_t slurm_job = 0;
        bool all = false;
        size_t n_ids;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0) {
                r = option == CANCEL_SLURM_JOB ? cli_read_slurm_job(cli, &slurm_job) : 0;
                if (r)
                        return r;
                all |= option == CANCEL_ALL;
        }
        if (r < 0)
                return cli->code;
        n_ids = (size_t)(argc - optind);
        if (all + (slurm_job > 0) + (n_ids > 0) != 1)
                return cli_usage(cli, "expected job ids, --all or --slurm-job");

        ids = calloc(n_ids + 1, sizeof(*ids));
        if (!ids)
                return cli_no_memory(cli);
        r = cancel_read_ids(cli, argv + optind, n_ids, ids);
        if (r)
                return r;

        r = cli_connect(cli);
        if (r)
                return r;
        return n_ids ? cancel_ids(cli, ids, n_ids) : cancel_many(cli, slurm_job);
}

static const struct option cancel_options[] = {
        {"all", no_argument, NULL, CANCEL_ALL},
        {"slurm-job", required_argument, NULL, CANCEL_SLURM_JOB},
        VERB_OPTIONS,
};

const Verb verb_cancel = {
        .name = "cancel",
        .arguments = "[OPTION...] ID... | --all | --slurm-job ID",
        .summary = "cancel your jobs; root and the admin group can cancel any job",
        .help = "      --all              cancel all your unfinished jobs\n"
                "      --slurm-job ID     cancel those of this job of Slurm\n",
        .shorts = "",
        .options = cancel_options,
        .run = cancel_run,
};
