/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq queue - running jobs, waiting jobs with the reason why each waits, and modules that load
 */

#include <string.h>

#include "util/human.h"
#include "json.h"
#include "table.h"
#include "verb.h"
#include "who.h"

typedef struct QueueOptions {
        int64_t uid; /* -1: everybody */
        bool heading;
} QueueOptions;

enum {
        QUEUE_ME = VERB_OWN,
};

static void queue_json_modules(struct json_object *document, const gpuq_queue *queue) {
        struct json_object *array = json_array(document, "modules");

        for (size_t i = 0; i < queue->n_modules; i++) {
                const gpuq_queue_module *module = &queue->modules[i];
                struct json_object *object = json_array_object(array);

                json_number(object, "uid", module->uid);
                json_text(object, "user", module->user);
                json_text(object, "name", module->name);
                json_text(object, "reason", module->reason);
                json_number(object, "waited_us", module->waited_us);
                json_signed(object, "device", module->device);
        }
}

static void queue_print_json(const gpuq_queue *queue) {
        struct json_object *document = json_document();
        struct json_object *array = json_array(document, "jobs");

        for (size_t i = 0; i < queue->n_entries; i++) {
                const gpuq_queue_entry *entry = &queue->entries[i];
                struct json_object *object = json_array_object(array);

                json_id(object, "id", entry->id);
                json_number(object, "uid", entry->uid);
                json_text(object, "user", entry->user);
                json_text(object, "label", entry->label);
                json_text(object, "kernel", entry->kernel);
                json_text(object, "state", entry->state);
                json_text(object, "reason", entry->reason);
                json_number(object, "waited_us", entry->waited_us);
                json_number(object, "ran_us", entry->ran_us);
                json_signed(object, "priority", entry->priority);
                json_signed(object, "device", entry->device);
                json_number(object, "retries", entry->retries);
                json_number(object, "slurm_job", entry->slurm_job);
        }
        queue_json_modules(document, queue);
        json_print(document);
}

static const char *dash(const char *text) {
        return *text ? text : "-";
}

static void queue_print_device(Table *table, int device) {
        if (device < 0)
                table_cell(table, "-");
        else
                table_cell(table, "%d", device);
}

static void queue_print_slurm_job(Table *table, uint32_t slurm_job) {
        if (slurm_job)
                table_cell(table, "%u", slurm_job);
        else
                table_cell(table, "-");
}

static void queue_print_entry(Table *table, const gpuq_queue_entry *entry) {
        bool running = strcmp(entry->state, "running") == 0;
        char id[24];

        table_row(table, running ? TABLE_GOOD : TABLE_PLAIN);
        table_cell(table, "%s", gpuq_id_format(entry->id, id));
        table_cell(table, "%s", entry->user);
        table_cell(table, "%s", dash(entry->label));
        table_cell(table, "%s", dash(entry->kernel));
        table_cell(table, "%s", entry->state);
        table_cell(table, "%s", dash(entry->reason));
        table_cell(table, "%s", human_us(entry->waited_us).text);
        table_cell(table, "%s", running ? human_us(entry->ran_us).text : "-");
        table_cell(table, "%d", entry->priority);
        queue_print_device(table, entry->device);
        table_cell(table, "%u", entry->retries);
        queue_print_slurm_job(table, entry->slurm_job);
}

/* It has no id, and its name stands in the place of a kernel's. */
static void queue_print_module(Table *table, const gpuq_queue_module *module) {
        table_row(table, TABLE_PLAIN);
        table_cell(table, "-");
        table_cell(table, "%s", module->user);
        table_cell(table, "-");
        table_cell(table, "%s", dash(module->name));
        table_cell(table, "loading");
        table_cell(table, "%s", module->reason);
        table_cell(table, "%s", human_us(module->waited_us).text);
        table_cell(table, "-");
        table_cell(table, "-");
        queue_print_device(table, module->device);
        table_cell(table, "-");
        queue_print_slurm_job(table, 0);
}

static int queue_print(const gpuq_queue *queue, bool heading) {
        static const TableColumn columns[] = {
                {"ID", .right = true},
                {"USER", .shorten = true},
                {"LABEL", .shorten = true, .spare = true},
                {"KERNEL", .shorten = true},
                {"STATE"},
                {"REASON", .wrap = true},
                {"WAITED", .right = true},
                {"RAN", .right = true, .spare = true},
                {"PRI", .right = true, .spare = true},
                {"DEV", .right = true},
                {"RETRIES", .right = true, .spare = true},
                {"SLURM", .right = true, .rare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), heading, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < queue->n_entries; i++)
                queue_print_entry(table, &queue->entries[i]);
        for (size_t i = 0; i < queue->n_modules; i++)
                queue_print_module(table, &queue->modules[i]);
        return table_print(table);
}

static int queue_read_options(Cli *cli, int argc, char **argv, QueueOptions *options) {
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                switch (option) {
                        case 'u':
                                r = who_read_user(cli, &options->uid);
                                if (r)
                                        return r;
                                break;
                        case QUEUE_ME:
                                options->uid = getuid();
                                break;
                        case 'h':
                                options->heading = false;
                                break;
                }
        if (r == 0 && optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        return r;
}

static int queue_run(Cli *cli, int argc, char **argv) {
        QueueOptions options = {.uid = -1, .heading = true};
        gpuq_queue *queue = NULL;
        int r;

        r = queue_read_options(cli, argc, argv, &options);
        if (r)
                return r < 0 ? (int)cli->code : r;

        r = cli_connect(cli);
        if (r)
                return r;
        r = gpuq_get_queue(cli->client, options.uid, &queue);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        if (cli->json)
                queue_print_json(queue);
        else
                r = queue_print(queue, options.heading);
        gpuq_queue_free(queue);
        return r < 0 ? cli_no_memory(cli) : 0;
}

static const struct option queue_options[] = {
        {"user", required_argument, NULL, 'u'},
        {"me", no_argument, NULL, QUEUE_ME},
        {"noheader", no_argument, NULL, 'h'},
        VERB_OPTIONS,
};

const Verb verb_queue = {
        .name = "queue",
        .arguments = "[OPTION...]",
        .summary = "show running jobs, waiting jobs with the reason, and modules that load",
        .help = "  -u, --user USER        show the jobs of this user, a name or number\n"
                "      --me               show your own jobs\n"
                "  -h, --noheader         do not print headings\n",
        .shorts = "u:h",
        .options = queue_options,
        .run = queue_run,
};
