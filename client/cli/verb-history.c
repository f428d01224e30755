/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq history - jobs that have ended
 */

#include <string.h>

#include "util/human.h"
#include "csv.h"
#include "json.h"
#include "table.h"
#include "verb.h"
#include "when.h"
#include "who.h"

#define HISTORY_IDS_MAX 100u /* that gpuqd accepts */

typedef struct HistoryOptions {
        gpuq_history_query query;
        WhoUsers users;
        uint64_t ids[HISTORY_IDS_MAX];
        char states[64]; /* as gpuqd names them, separated by commas */
        bool has_since;
        bool csv;
        bool heading;
} HistoryOptions;

enum {
        HISTORY_STATE = VERB_OWN,
        HISTORY_KERNEL,
        HISTORY_LABEL,
        HISTORY_DEVICE,
        HISTORY_SLURM_JOB,
        HISTORY_CSV,
};

/* ---- one row ----------------------------------------------------------------- */

static const char *dash(const char *text) {
        return *text ? text : "-";
}

static void history_print_row(Table *table, const gpuq_history_row *row) {
        bool is_done = strcmp(row->state, "done") == 0;
        char id[24];

        table_row(table, is_done ? TABLE_PLAIN : TABLE_BAD);
        table_cell(table, "%s", when_show(row->at_ms).text);
        table_cell(table, "%s", row->id ? gpuq_id_format(row->id, id) : "-");
        table_cell(table, "%s", who_user(row->uid).name);
        table_cell(table, "%s", dash(row->label));
        table_cell(table, "%s", dash(row->kernels));
        table_cell(table, "%s", row->state);
        table_cell(table, "%llu", (unsigned long long)row->jobs);
        table_cell(table, "%s", human_us(row->waited.median_us).text);
        table_cell(table, "%s", human_us(row->ran.median_us).text);
        table_cell(table, "%s", human_ns(row->gpu_ns).text);
        table_cell(table, "%s", row->submitted_ms ? when_show(row->submitted_ms).text : "-");
        if (row->slurm_job)
                table_cell(table, "%u", row->slurm_job);
        else
                table_cell(table, "-");
        table_cell(table, "%s", dash(row->reason));
}

static void history_add_spread(struct json_object *object, const char *name,
                               const gpuq_spread *spread) {
        struct json_object *member = json_member(object, name);

        json_number(member, "median", spread->median_us);
        json_number(member, "p95", spread->p95_us);
        json_number(member, "p99", spread->p99_us);
}

/* null: not known, of a row that several jobs share. */
static void history_add_submitted(struct json_object *object, uint64_t ms) {
        json_text(object, "submitted", ms ? when_iso(ms).text : NULL);
        if (ms)
                json_number(object, "submitted_ms", ms);
        else
                json_text(object, "submitted_ms", NULL);
}

static void history_add_json(struct json_object *array, const gpuq_history_row *row) {
        struct json_object *object = json_array_object(array);

        if (row->id)
                json_id(object, "id", row->id);
        else
                json_text(object, "id", NULL);
        json_text(object, "time", when_iso(row->at_ms).text);
        json_number(object, "time_ms", row->at_ms);
        history_add_submitted(object, row->submitted_ms);
        json_number(object, "uid", row->uid);
        json_text(object, "user", who_user(row->uid).name);
        json_number(object, "gid", row->gid);
        json_text(object, "label", row->label);
        json_text(object, "kernels", row->kernels);
        json_signed(object, "device", row->device);
        json_text(object, "state", row->state);
        json_text(object, "code", row->code);
        json_text(object, "reason", row->reason);
        json_number(object, "jobs", row->jobs);
        json_number(object, "waited_us", row->waited_us);
        json_number(object, "ran_us", row->ran_us);
        json_number(object, "gpu_us", row->gpu_ns / 1000);
        json_number(object, "bytes", row->bytes);
        json_number(object, "retries", row->retries);
        history_add_spread(object, "waited_each_us", &row->waited);
        history_add_spread(object, "ran_each_us", &row->ran);
        json_number(object, "slurm_job", row->slurm_job);
}

static void history_print_csv_heading(void) {
        static const char *const names[] = {"time",
                                            "submitted",
                                            "id",
                                            "user",
                                            "uid",
                                            "gid",
                                            "label",
                                            "kernels",
                                            "device",
                                            "state",
                                            "code",
                                            "reason",
                                            "jobs",
                                            "waited_us",
                                            "ran_us",
                                            "gpu_us",
                                            "bytes",
                                            "retries",
                                            "waited_median_us",
                                            "waited_p95_us",
                                            "waited_p99_us",
                                            "ran_median_us",
                                            "ran_p95_us",
                                            "ran_p99_us",
                                            "slurm_job"};
        Csv csv = {0};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                csv_text(&csv, names[i]);
        csv_end(&csv);
}

static void history_print_csv(const gpuq_history_row *row) {
        const uint64_t numbers[] = {
                row->jobs,          row->waited_us,     row->ran_us,           row->gpu_ns / 1000,
                row->bytes,         row->retries,       row->waited.median_us, row->waited.p95_us,
                row->waited.p99_us, row->ran.median_us, row->ran.p95_us,       row->ran.p99_us,
                row->slurm_job,
        };
        Csv csv = {0};
        char id[24];

        csv_text(&csv, when_iso(row->at_ms).text);
        csv_text(&csv, row->submitted_ms ? when_iso(row->submitted_ms).text : "");
        csv_text(&csv, row->id ? gpuq_id_format(row->id, id) : "");
        csv_text(&csv, who_user(row->uid).name);
        csv_number(&csv, row->uid);
        csv_number(&csv, row->gid);
        csv_text(&csv, row->label);
        csv_text(&csv, row->kernels);
        if (row->device < 0)
                csv_text(&csv, "");
        else
                csv_number(&csv, (uint64_t)row->device);
        csv_text(&csv, row->state);
        csv_text(&csv, row->code);
        csv_text(&csv, row->reason);
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                csv_number(&csv, numbers[i]);
        csv_end(&csv);
}

/* ---- all of them ------------------------------------------------------------- */

/* Where rows go: one of three. */
typedef struct HistoryOutput {
        Table *table;
        struct json_object *document, *array;
} HistoryOutput;

static int history_begin(const Cli *cli, const HistoryOptions *options, HistoryOutput *output) {
        static const TableColumn columns[] = {
                {"ENDED"},
                {"JOB"},
                {"USER"},
                {"LABEL", .shorten = true},
                {"KERNELS", .shorten = true},
                {"STATE"},
                {"JOBS", .right = true, .spare = true},
                {"WAITED", .right = true, .spare = true},
                {"RAN", .right = true, .spare = true},
                {"GPU", .right = true, .spare = true},
                {"SUBMITTED", .spare = true},
                {"SLURM", .right = true, .rare = true},
                {"REASON", .wrap = true},
        };

        if (cli->json) {
                output->document = json_document();
                output->array = json_array(output->document, "history");
                return 0;
        }
        if (!options->csv)
                return table_new(columns, ARRAY_SIZE(columns), options->heading, &output->table);
        if (options->heading)
                history_print_csv_heading();
        return 0;
}

static void history_add(HistoryOutput *output, const gpuq_history_row *row) {
        if (output->array)
                history_add_json(output->array, row);
        else if (output->table)
                history_print_row(output->table, row);
        else
                history_print_csv(row);
}

static int history_end(HistoryOutput *output) {
        if (output->document)
                json_print(output->document);
        output->document = NULL;
        return output->table ? table_print(output->table) : 0;
}

static int history_get(Cli *cli, HistoryOptions *options, HistoryOutput *output) {
        gpuq_history *history;
        bool is_last = false;
        int r;

        while (!is_last) {
                r = gpuq_get_history(cli->client, &options->query, &history);
                if (r < 0)
                        return cli_failed(cli, EXIT_WHEN_ASKED, r);
                for (size_t i = 0; i < history->n_rows; i++)
                        history_add(output, &history->rows[i]);
                is_last = history->is_last;
                gpuq_history_free(history);
        }
        return history_end(output) < 0 ? cli_no_memory(cli) : 0;
}

/* ---- options ----------------------------------------------------------------- */

/* In any case, and as Slurm names it. Return: NULL: there is no such state. */
static const char *history_state(const char *name) {
        static const char *const states[][2] = {{"done", "done"},
                                                {"completed", "done"},
                                                {"failed", "failed"},
                                                {"cancelled", "cancelled"}};

        for (size_t i = 0; i < ARRAY_SIZE(states); i++)
                if (strcasecmp(name, states[i][0]) == 0)
                        return states[i][1];
        return NULL;
}

/* Each state once, so that all fit. */
static int history_read_states(Cli *cli, HistoryOptions *options) {
        const char *name, *state;

        while ((name = strsep(&optarg, ","))) {
                state = history_state(name);
                if (!state)
                        return cli_usage(cli,
                                         "--state `%s': expected done, failed or cancelled, or "
                                         "several, separated by commas",
                                         name);
                if (!strstr(options->states, state))
                        snprintf(options->states + strlen(options->states),
                                 sizeof(options->states) - strlen(options->states), "%s%s",
                                 *options->states ? "," : "", state);
        }
        options->query.state = options->states;
        return 0;
}

static int history_read_ids(Cli *cli, HistoryOptions *options) {
        gpuq_history_query *query = &options->query;
        const char *name;

        query->ids = options->ids;
        while ((name = strsep(&optarg, ","))) {
                if (query->n_ids == HISTORY_IDS_MAX)
                        return cli_usage(cli, "--job: more than %u ids", HISTORY_IDS_MAX);
                if (gpuq_id_parse(name, &options->ids[query->n_ids++]) < 0)
                        return cli_usage(cli, "--job `%s': not a job id", name);
        }
        return 0;
}

static int history_read_time(Cli *cli, const char *name, uint64_t *ret_ms) {
        return when_parse(optarg, time(NULL), ret_ms) < 0 ? cli_option(cli, name, WHEN_FORMS) : 0;
}

static int history_read_option(Cli *cli, int option, HistoryOptions *options) {
        gpuq_history_query *query = &options->query;

        switch (option) {
                case 'u':
                        return who_read_users(cli, &options->users);
                case 'j':
                        return history_read_ids(cli, options);
                case HISTORY_DEVICE:
                        return cli_device(cli, &query->device);
                case 'S':
                        options->has_since = true;
                        return history_read_time(cli, "--since", &query->since_ms);
                case 'E':
                        return history_read_time(cli, "--until", &query->until_ms);
                case HISTORY_STATE:
                        return history_read_states(cli, options);
                case HISTORY_KERNEL:
                        query->kernel = optarg;
                        return 0;
                case HISTORY_LABEL:
                        query->label = optarg;
                        return 0;
                case HISTORY_SLURM_JOB:
                        return cli_read_slurm_job(cli, &query->slurm_job);
                case HISTORY_CSV:
                        options->csv = true;
                        return 0;
                default:
                        options->heading = false;
                        return 0;
        }
}

static int history_read_options(Cli *cli, int argc, char **argv, HistoryOptions *options) {
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0) {
                r = history_read_option(cli, option, options);
                if (r)
                        return r;
        }
        if (r < 0)
                return r;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        /* A job is shown whenever it ended. */
        if (options->query.n_ids && !options->has_since)
                options->query.since_ms = 0;
        options->query.uids = options->users.uids;
        options->query.n_uids = options->users.n;
        if (options->csv && cli->json)
                return cli_usage(cli, "--csv and --json exclude each other");
        if (options->query.until_ms && options->query.until_ms <= options->query.since_ms)
                return cli_usage(cli, "--until is not after --since");
        return 0;
}

static int history_run(Cli *cli, int argc, char **argv) {
        HistoryOptions options = {.query = {.uid = -1, .device = -1}, .heading = true};
        HistoryOutput output = {0};
        int r;

        options.query.since_ms = (uint64_t)when_midnight(time(NULL), 0) * 1000;
        r = history_read_options(cli, argc, argv, &options);
        if (r)
                return r < 0 ? (int)cli->code : r;

        r = cli_connect(cli);
        if (r)
                return r;
        if (history_begin(cli, &options, &output) < 0)
                return cli_no_memory(cli);
        r = history_get(cli, &options, &output);
        table_free(output.table);
        if (output.document)
                json_object_put(output.document);
        return r;
}

static const struct option history_options[] = {
        {"user", required_argument, NULL, 'u'},
        {"job", required_argument, NULL, 'j'},
        {"since", required_argument, NULL, 'S'},
        {"until", required_argument, NULL, 'E'},
        {"state", required_argument, NULL, HISTORY_STATE},
        {"kernel", required_argument, NULL, HISTORY_KERNEL},
        {"label", required_argument, NULL, HISTORY_LABEL},
        {"device", required_argument, NULL, HISTORY_DEVICE},
        {"slurm-job", required_argument, NULL, HISTORY_SLURM_JOB},
        {"csv", no_argument, NULL, HISTORY_CSV},
        {"noheader", no_argument, NULL, 'h'},
        VERB_OPTIONS,
};

const Verb verb_history = {
        .name = "history",
        .arguments = "[OPTION...]",
        .summary = "show jobs that have ended, those of today unless --since is given",
        .help = "  -u, --user USER        show the jobs of this user, a name or number, or of\n"
                "                         several, separated by commas\n"
                "  -j, --job ID[,ID...]   show these jobs, whenever they ended\n"
                "  -S, --since TIME       show jobs that ended from this time on: 2026-05-31,\n"
                "                         \"2026-05-31 14:30\", 14:30, today, yesterday, now-2h\n"
                "  -E, --until TIME       and before this time\n"
                "      --state STATE      show jobs that are done, failed or cancelled; several "
                "are\n"
                "                         separated by commas\n"
                "      --kernel NAME      show jobs with this kernel\n"
                "      --label LABEL      show jobs with this label\n"
                "      --device N         show jobs that ran on this device\n"
                "      --slurm-job ID     show jobs of this job of Slurm\n"
                "      --csv              print comma-separated values\n"
                "  -h, --noheader         do not print headings\n",
        .shorts = "u:j:S:E:h",
        .options = history_options,
        .run = history_run,
};
