/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq report - who used the devices how much
 */

#include <string.h>

#include "util/human.h"
#include "csv.h"
#include "json.h"
#include "table.h"
#include "verb.h"
#include "when.h"
#include "who.h"

#define REPORT_PERIODS 3660u /* ten years of days */

typedef enum ReportPer {
        REPORT_PER_ALL,
        REPORT_PER_DAY,
        REPORT_PER_WEEK,
        REPORT_PER_MONTH,
} ReportPer;

typedef struct ReportOptions {
        WhoUsers users; /* none: everybody */
        int device;     /* -1: all */
        uint64_t since_ms;
        uint64_t until_ms;
        gpuq_report_by by;
        ReportPer per;
        bool csv;
        bool heading;
} ReportOptions;

/* Where rows go: one of three. */
typedef struct ReportOutput {
        const ReportOptions *options;
        TableColumn columns[10]; /* of the table */
        Table *table;
        struct json_object *document, *array;
        uint64_t begin_ms, end_ms; /* the period of the rows */
        bool is_cut;
} ReportOutput;

enum {
        REPORT_BY = VERB_OWN,
        REPORT_PER,
        REPORT_DEVICE,
        REPORT_CSV,
};

/* ---- one row ----------------------------------------------------------------- */

static Who report_user(const ReportOptions *options, const gpuq_report_row *row) {
        bool is_of_many =
                options->by == GPUQ_REPORT_BY_GROUP || options->by == GPUQ_REPORT_BY_ACCOUNT;

        return is_of_many ? (Who){"-"} : who_user(row->uid);
}

static Who report_group(const ReportOptions *options, const gpuq_report_row *row) {
        bool is_of_many =
                options->by == GPUQ_REPORT_BY_LABEL || options->by == GPUQ_REPORT_BY_ACCOUNT;

        return is_of_many ? (Who){"-"} : who_group(row->gid);
}

/* "2026-05-31", "2026-W22" or "2026-05" */
static void report_period_cell(const ReportOutput *output) {
        if (output->options->per == REPORT_PER_WEEK)
                table_cell(output->table, "%s", when_show_week(output->begin_ms).text);
        else
                table_cell(output->table, "%.*s", output->options->per == REPORT_PER_DAY ? 10 : 7,
                           when_show(output->begin_ms).text);
}

static void report_print_row(const ReportOutput *output, const gpuq_report_row *row) {
        const ReportOptions *options = output->options;
        Table *table = output->table;

        table_row(table, TABLE_PLAIN);
        if (options->per != REPORT_PER_ALL)
                report_period_cell(output);
        if (options->by == GPUQ_REPORT_BY_GROUP)
                table_cell(table, "%s", who_group(row->gid).name);
        else if (options->by == GPUQ_REPORT_BY_ACCOUNT)
                table_cell(table, "%s", *row->account ? row->account : "-");
        else
                table_cell(table, "%s", who_user(row->uid).name);
        if (options->by == GPUQ_REPORT_BY_LABEL)
                table_cell(table, "%s", *row->label ? row->label : "-");
        if (options->by == GPUQ_REPORT_BY_SLURM_JOB)
                table_cell(table, "%u", row->slurm_job);
        table_cell(table, "%llu", (unsigned long long)row->jobs);
        table_cell(table, "%llu", (unsigned long long)row->failed);
        table_cell(table, "%llu", (unsigned long long)row->cancelled);
        table_cell(table, "%.3f", (double)row->gpu_ns / 1e9);
        table_cell(table, "%s", human_us(row->waited_us).text);
        table_cell(table, "%s", human_us(row->jobs ? row->waited_us / row->jobs : 0).text);
        table_cell(table, "%s", human_bytes(row->bytes).text);
}

static void report_add_json(const ReportOutput *output, const gpuq_report_row *row) {
        struct json_object *object = json_array_object(output->array);

        json_text(object, "begin", when_iso(output->begin_ms).text);
        json_text(object, "end", when_iso(output->end_ms).text);
        json_text(object, "user", report_user(output->options, row).name);
        json_text(object, "group", report_group(output->options, row).name);
        json_text(object, "label", row->label);
        json_number(object, "slurm_job", row->slurm_job);
        json_text(object, "account", row->account);
        json_number(object, "jobs", row->jobs);
        json_number(object, "failed", row->failed);
        json_number(object, "cancelled", row->cancelled);
        json_real(object, "gpu_seconds", (double)row->gpu_ns / 1e9);
        json_real(object, "waited_seconds", (double)row->waited_us / 1e6);
        json_real(object, "ran_seconds", (double)row->ran_us / 1e6);
        json_number(object, "bytes", row->bytes);
        json_number(object, "retries", row->retries);
}

static void report_print_csv_heading(void) {
        static const char *const names[] = {
                "begin",       "end",    "user",      "group",       "label",
                "jobs",        "failed", "cancelled", "gpu_seconds", "waited_seconds",
                "ran_seconds", "bytes",  "retries",   "slurm_job",   "account"};
        Csv csv = {0};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                csv_text(&csv, names[i]);
        csv_end(&csv);
}

static void report_print_csv(const ReportOutput *output, const gpuq_report_row *row) {
        Csv csv = {0};

        csv_text(&csv, when_iso(output->begin_ms).text);
        csv_text(&csv, when_iso(output->end_ms).text);
        csv_text(&csv, report_user(output->options, row).name);
        csv_text(&csv, report_group(output->options, row).name);
        csv_text(&csv, row->label);
        csv_number(&csv, row->jobs);
        csv_number(&csv, row->failed);
        csv_number(&csv, row->cancelled);
        csv_seconds(&csv, row->gpu_ns);
        csv_seconds(&csv, row->waited_us * 1000);
        csv_seconds(&csv, row->ran_us * 1000);
        csv_number(&csv, row->bytes);
        csv_number(&csv, row->retries);
        csv_number(&csv, row->slurm_job);
        csv_text(&csv, row->account);
        csv_end(&csv);
}

/* ---- all of them ------------------------------------------------------------- */

static int report_new_table(ReportOutput *output) {
        static const char *const periods[] = {
                [REPORT_PER_DAY] = "DAY", [REPORT_PER_WEEK] = "WEEK", [REPORT_PER_MONTH] = "MONTH"};
        const ReportOptions *options = output->options;
        TableColumn *columns = output->columns;
        size_t n = 0;

        if (options->per != REPORT_PER_ALL)
                columns[n++] = (TableColumn){periods[options->per]};
        columns[n++] = (TableColumn){options->by == GPUQ_REPORT_BY_GROUP     ? "GROUP"
                                     : options->by == GPUQ_REPORT_BY_ACCOUNT ? "ACCOUNT"
                                                                             : "USER"};
        if (options->by == GPUQ_REPORT_BY_LABEL)
                columns[n++] = (TableColumn){"LABEL", .shorten = true};
        if (options->by == GPUQ_REPORT_BY_SLURM_JOB)
                columns[n++] = (TableColumn){"SLURM JOB", .right = true};
        columns[n++] = (TableColumn){"JOBS", .right = true};
        columns[n++] = (TableColumn){"FAILED", .right = true};
        columns[n++] = (TableColumn){"CANC", .right = true};
        columns[n++] = (TableColumn){"GPU SEC", .right = true};
        columns[n++] = (TableColumn){"WAITED", .right = true};
        columns[n++] = (TableColumn){"A JOB", .right = true};
        columns[n++] = (TableColumn){"COPIED", .right = true};
        return table_new(columns, n, options->heading, &output->table);
}

static int report_begin(const Cli *cli, ReportOutput *output) {
        const ReportOptions *options = output->options;

        if (cli->json) {
                output->document = json_document();
                output->array = json_array(output->document, "report");
                return 0;
        }
        if (!options->csv)
                return report_new_table(output);
        if (options->heading)
                report_print_csv_heading();
        return 0;
}

static void report_add(const ReportOutput *output, const gpuq_report *report) {
        for (size_t i = 0; i < report->n_rows; i++)
                if (output->array)
                        report_add_json(output, &report->rows[i]);
                else if (output->table)
                        report_print_row(output, &report->rows[i]);
                else
                        report_print_csv(output, &report->rows[i]);
}

static uint64_t report_next(const ReportOptions *options, uint64_t begin_ms) {
        time_t begin = (time_t)(begin_ms / 1000);
        uint64_t end_ms = options->until_ms;

        if (options->per == REPORT_PER_DAY)
                end_ms = (uint64_t)when_midnight(begin, 1) * 1000;
        else if (options->per == REPORT_PER_WEEK)
                end_ms = (uint64_t)when_week(begin, 1) * 1000;
        else if (options->per == REPORT_PER_MONTH)
                end_ms = (uint64_t)when_month(begin, 1) * 1000;
        return end_ms < options->until_ms ? end_ms : options->until_ms;
}

static int report_get(Cli *cli, ReportOutput *output) {
        const ReportOptions *options = output->options;
        gpuq_report_query query = {
                .by = options->by,
                .uid = -1,
                .uids = options->users.uids,
                .n_uids = options->users.n,
                .device = options->device,
        };
        gpuq_report *report;
        int r;

        for (uint64_t begin_ms = options->since_ms; begin_ms < options->until_ms;
             begin_ms = output->end_ms) {
                output->begin_ms = begin_ms;
                output->end_ms = report_next(options, begin_ms);
                query.since_ms = begin_ms;
                query.until_ms = output->end_ms;
                r = gpuq_get_report(cli->client, &query, &report);
                if (r < 0)
                        return cli_failed(cli, EXIT_WHEN_ASKED, r);
                report_add(output, report);
                output->is_cut |= report->is_cut;
                gpuq_report_free(report);
        }
        return 0;
}

static int report_end(Cli *cli, ReportOutput *output) {
        if (output->is_cut)
                fprintf(stderr, "gpuq: only the 1,000 lines with the most GPU time of a period are "
                                "shown\n");
        if (output->document)
                json_print(output->document);
        output->document = NULL;
        return output->table && table_print(output->table) < 0 ? cli_no_memory(cli) : 0;
}

/* ---- options ----------------------------------------------------------------- */

/* Return: the number of the word in optarg, or -1. */
static int report_word(const char *const *words, size_t n_words) {
        for (size_t i = 0; i < n_words; i++)
                if (strcmp(optarg, words[i]) == 0)
                        return (int)i;
        return -1;
}

static int report_read_words(Cli *cli, int option, ReportOptions *options) {
        static const char *const by[] = {"user", "group", "label", "slurm-job", "account"};
        static const char *const per[] = {"all", "day", "week", "month"};
        int n = option == REPORT_BY ? report_word(by, ARRAY_SIZE(by))
                                    : report_word(per, ARRAY_SIZE(per));

        if (n < 0)
                return option == REPORT_BY
                               ? cli_option(cli, "--by", "user, group, label, slurm-job or account")
                               : cli_option(cli, "--per", "day, week, month or all");
        if (option == REPORT_BY)
                options->by = (gpuq_report_by)n;
        else
                options->per = (ReportPer)n;
        return 0;
}

static int report_read_option(Cli *cli, int option, ReportOptions *options) {
        switch (option) {
                case 'u':
                        return who_read_users(cli, &options->users);
                case REPORT_DEVICE:
                        return cli_device(cli, &options->device);
                case 'S':
                        return when_parse(optarg, time(NULL), &options->since_ms) < 0
                                       ? cli_option(cli, "--since", WHEN_FORMS)
                                       : 0;
                case 'E':
                        return when_parse(optarg, time(NULL), &options->until_ms) < 0
                                       ? cli_option(cli, "--until", WHEN_FORMS)
                                       : 0;
                case REPORT_CSV:
                        options->csv = true;
                        return 0;
                case 'h':
                        options->heading = false;
                        return 0;
                default:
                        return report_read_words(cli, option, options);
        }
}

static int report_check(Cli *cli, const ReportOptions *options) {
        uint64_t n_days = (options->until_ms - options->since_ms) / 86400000;

        if (options->csv && cli->json)
                return cli_usage(cli, "--csv and --json exclude each other");
        if (options->until_ms <= options->since_ms)
                return cli_usage(cli, "--until is not after --since");
        if (options->per == REPORT_PER_DAY && n_days > REPORT_PERIODS)
                return cli_usage(cli,
                                 "--per day: at most %u days, but there are %llu between "
                                 "--since and --until",
                                 REPORT_PERIODS, (unsigned long long)n_days);
        return 0;
}

static int report_read_options(Cli *cli, int argc, char **argv, ReportOptions *options) {
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0) {
                r = report_read_option(cli, option, options);
                if (r)
                        return r;
        }
        if (r < 0)
                return r;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        return report_check(cli, options);
}

static int report_run(Cli *cli, int argc, char **argv) {
        ReportOptions options = {.device = -1, .heading = true};
        ReportOutput output = {.options = &options};
        time_t now = time(NULL);
        int r;

        options.since_ms = (uint64_t)when_month(now, 0) * 1000;
        options.until_ms = (uint64_t)(now + 1) * 1000;
        r = report_read_options(cli, argc, argv, &options);
        if (r)
                return r < 0 ? (int)cli->code : r;

        r = cli_connect(cli);
        if (r)
                return r;
        if (report_begin(cli, &output) < 0)
                return cli_no_memory(cli);
        r = report_get(cli, &output);
        if (r == 0)
                r = report_end(cli, &output);
        table_free(output.table);
        if (output.document)
                json_object_put(output.document);
        return r;
}

static const struct option report_options[] = {
        {"user", required_argument, NULL, 'u'},
        {"since", required_argument, NULL, 'S'},
        {"until", required_argument, NULL, 'E'},
        {"by", required_argument, NULL, REPORT_BY},
        {"per", required_argument, NULL, REPORT_PER},
        {"device", required_argument, NULL, REPORT_DEVICE},
        {"csv", no_argument, NULL, REPORT_CSV},
        {"noheader", no_argument, NULL, 'h'},
        VERB_OPTIONS,
};

const Verb verb_report = {
        .name = "report",
        .arguments = "[OPTION...]",
        .summary = "sum up GPU time, jobs and waiting time, of this month unless --since is given",
        .help = "      --by KEY           a line for each user (default), group, label,\n"
                "                         slurm-job or account\n"
                "      --per PERIOD       lines for each day, week or month\n"
                "  -u, --user USER        sum up the jobs of this user, a name or number, or of\n"
                "                         several, separated by commas\n"
                "      --device N         sum up the jobs that ran on this device\n"
                "  -S, --since TIME       sum up jobs that ended from this time on: 2026-05-31,\n"
                "                         \"2026-05-31 14:30\", 14:30, today, yesterday, now-2h\n"
                "  -E, --until TIME       and before this time\n"
                "      --csv              print comma-separated values\n"
                "  -h, --noheader         do not print headings\n",
        .shorts = "u:S:E:h",
        .options = report_options,
        .run = report_run,
};
