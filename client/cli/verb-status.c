/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq status - devices, driver, workers and users, and the number of waiting and running jobs
 */

#include <string.h>

#include "util/human.h"
#include "json.h"
#include "table.h"
#include "verb.h"

enum {
        STATUS_VERBOSE = VERB_OWN,
};

static void status_json_devices(struct json_object *document, const gpuq_status *status) {
        struct json_object *array = json_array(document, "devices");

        for (size_t i = 0; i < status->n_devices; i++) {
                const gpuq_device_status *device = &status->devices[i];
                struct json_object *object = json_array_object(array);

                json_number(object, "index", device->index);
                json_text(object, "name", device->name);
                json_text(object, "uuid", device->uuid);
                json_text(object, "pci", device->pci);
                json_text(object, "state", device->state);
                json_text(object, "drained", device->drained);
                if (device->xids >= 0)
                        json_number(object, "xids", (uint64_t)device->xids);
                else
                        json_text(object, "xids", NULL);
                json_number(object, "memory_total", device->memory_total);
                json_number(object, "memory_arenas", device->memory_arenas);
                json_number(object, "queued", device->queued);
                json_number(object, "running", device->running);
                json_number(object, "quanta", device->quanta);
                json_number(object, "overruns", device->overruns);
        }
}

static void status_json_counters(struct json_object *worker, const gpuq_worker_counters *counters) {
        struct json_object *object = json_member(worker, "counters");

        json_number(object, "batches", counters->batches);
        json_number(object, "coalesced", counters->coalesced);
        json_number(object, "in_place", counters->in_place);
        json_number(object, "staged_by_kernel", counters->staged_by_kernel);
        json_number(object, "staged_by_copy", counters->staged_by_copy);
        json_number(object, "graph_hits", counters->graph_hits);
        json_number(object, "graph_misses", counters->graph_misses);
        json_number(object, "graph_evictions", counters->graph_evictions);
}

static void status_json_workers(struct json_object *document, const gpuq_status *status) {
        struct json_object *array = json_array(document, "workers");

        for (size_t i = 0; i < status->n_workers; i++) {
                const gpuq_worker_status *worker = &status->workers[i];
                struct json_object *object = json_array_object(array);

                json_signed(object, "pid", worker->pid);
                json_number(object, "device", worker->device);
                json_number(object, "uid", worker->uid);
                json_text(object, "state", worker->state);
                json_number(object, "memory", worker->memory);
                json_number(object, "contexts", worker->contexts);
                json_number(object, "running", worker->running);
                json_number(object, "jobs", worker->jobs);
                json_number(object, "express", worker->express);
                status_json_counters(object, &worker->counters);
        }
}

static void status_json_users(struct json_object *document, const gpuq_status *status) {
        struct json_object *array = json_array(document, "users");

        for (size_t i = 0; i < status->n_users; i++) {
                const gpuq_user_status *user = &status->users[i];
                struct json_object *object = json_array_object(array);

                json_number(object, "uid", user->uid);
                json_text(object, "user", user->user);
                json_real(object, "weight", user->weight);
                json_real(object, "share", user->share);
                json_real(object, "gpu_seconds", user->gpu_seconds);
                json_number(object, "sessions", user->sessions);
                json_number(object, "queued", user->queued);
                json_number(object, "running", user->running);
                json_number(object, "modules", user->modules);
                json_number(object, "arena_bytes", user->arena_bytes);
                json_number(object, "device_bytes", user->device_bytes);
                json_real(object, "usage_seconds", user->usage_seconds);
                json_real(object, "window_seconds", user->window_seconds);
                json_number(object, "done", user->done);
                json_number(object, "failed", user->failed);
                json_number(object, "cancelled", user->cancelled);
        }
}

static void status_print_json(const gpuq_status *status) {
        struct json_object *document = json_document();

        json_text(document, "daemon", status->daemon);
        json_text(document, "driver", status->driver);
        json_text(document, "driver_version", status->driver_version);
        json_text(document, "state", status->state);
        json_number(document, "uptime_us", status->uptime_us);
        json_text(document, "lacks", status->lacks);
        json_text(document, "history_problem", status->history_problem);
        json_number(document, "history_lost", status->history_lost);
        json_number(document, "queued", status->queued);
        json_number(document, "running", status->running);
        status_json_devices(document, status);
        status_json_workers(document, status);
        status_json_users(document, status);
        json_print(document);
}

static TableColor status_color(const char *state) {
        return strcmp(state, "ready") == 0 ? TABLE_GOOD : TABLE_BAD;
}

static int status_print_devices(const gpuq_status *status) {
        static const TableColumn columns[] = {
                {"DEV", .right = true},
                {"NAME", .shorten = true},
                {"STATE", .wrap = true},
                {"MEMORY", .right = true},
                {"ARENAS", .right = true},
                {"QUEUED", .right = true},
                {"RUNNING", .right = true},
                {"QUANTA", .right = true, .spare = true},
                {"OVERRUNS", .right = true, .spare = true},
                {"PCI", .spare = true},
                {"UUID", .spare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;

        for (size_t i = 0; i < status->n_devices; i++) {
                const gpuq_device_status *device = &status->devices[i];

                table_row(table, status_color(device->state));
                table_cell(table, "%u", device->index);
                table_cell(table, "%s", device->name);
                table_cell(table, "%s", device->state);
                table_cell(table, "%s", human_bytes(device->memory_total).text);
                table_cell(table, "%s", human_bytes(device->memory_arenas).text);
                table_cell(table, "%u", device->queued);
                table_cell(table, "%u", device->running);
                table_cell(table, "%llu", (unsigned long long)device->quanta);
                table_cell(table, "%llu", (unsigned long long)device->overruns);
                table_cell(table, "%s", device->pci);
                table_cell(table, "%s", device->uuid);
        }
        return table_print(table);
}

/* The daemon reports the names of users, but only the uid of a worker's user. */
static const char *status_user(const gpuq_status *status, uint32_t uid) {
        for (size_t i = 0; i < status->n_users; i++)
                if (status->users[i].uid == uid)
                        return status->users[i].user;
        return "-";
}

/* A spare worker has no user yet. */
static void status_print_owner(Table *table, const gpuq_status *status,
                               const gpuq_worker_status *worker) {
        bool is_spare = strcmp(worker->state, "spare") == 0;

        if (is_spare)
                table_cell(table, "-");
        else
                table_cell(table, "%u", worker->uid);
        table_cell(table, "%s", is_spare ? "-" : status_user(status, worker->uid));
}

static int status_print_workers(const gpuq_status *status) {
        static const TableColumn columns[] = {
                {"PID", .right = true},
                {"DEV", .right = true},
                {"UID", .right = true},
                {"USER", .shorten = true},
                {"STATE"},
                {"MEMORY", .right = true},
                {"RUNNING", .right = true},
                {"CONTEXTS", .right = true, .spare = true},
                {"JOBS", .right = true},
                {"COALESCED", .right = true, .spare = true},
                {"IN PLACE", .right = true, .spare = true},
                {"GRAPHS", .right = true, .spare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;

        for (size_t i = 0; i < status->n_workers; i++) {
                const gpuq_worker_status *worker = &status->workers[i];
                const gpuq_worker_counters *counters = &worker->counters;

                table_row(table, TABLE_PLAIN);
                table_cell(table, "%d", worker->pid);
                table_cell(table, "%u", worker->device);
                status_print_owner(table, status, worker);
                table_cell(table, "%s%s", worker->state, worker->express ? " (express)" : "");
                table_cell(table, "%s", human_bytes(worker->memory).text);
                table_cell(table, "%u", worker->running);
                table_cell(table, "%u", worker->contexts);
                table_cell(table, "%llu", (unsigned long long)worker->jobs);
                table_cell(table, "%llu", (unsigned long long)counters->coalesced);
                table_cell(table, "%llu", (unsigned long long)counters->in_place);
                table_cell(table, "%llu",
                           (unsigned long long)(counters->graph_hits + counters->graph_misses));
        }
        return table_print(table);
}

static int status_print_users(const gpuq_status *status) {
        static const TableColumn columns[] = {
                {"USER", .shorten = true},
                {"UID", .right = true, .spare = true},
                {"WEIGHT", .right = true},
                {"SHARE", .right = true},
                {"GPU TIME", .right = true},
                {"SESSIONS", .right = true, .spare = true},
                {"QUEUED", .right = true},
                {"RUNNING", .right = true},
                {"MODULES", .right = true, .spare = true},
                {"ARENAS", .right = true},
                {"DEVICE", .right = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;

        for (size_t i = 0; i < status->n_users; i++) {
                const gpuq_user_status *user = &status->users[i];

                table_row(table, TABLE_PLAIN);
                table_cell(table, "%s", user->user);
                table_cell(table, "%u", user->uid);
                table_cell(table, "%g", user->weight);
                table_cell(table, "%.0f%%", user->share * 100);
                table_cell(table, "%s", human_us((uint64_t)(user->gpu_seconds * 1e6)).text);
                table_cell(table, "%u", user->sessions);
                table_cell(table, "%u", user->queued);
                table_cell(table, "%u", user->running);
                table_cell(table, "%u", user->modules);
                table_cell(table, "%s", human_bytes(user->arena_bytes).text);
                table_cell(table, "%s", human_bytes(user->device_bytes).text);
        }
        return table_print(table);
}

static int status_print(const gpuq_status *status, bool is_verbose) {
        int r;

        printf("gpuqd %s, up %s: %u waiting, %u running\n", status->daemon,
               human_us(status->uptime_us).text, status->queued, status->running);
        printf("driver %s %s, %s\n", status->driver, status->driver_version, status->state);
        if (is_verbose && status->lacks)
                printf("%s\n", status->lacks);
        if (*status->history_problem)
                printf("%s\n", status->history_problem);
        if (status->history_lost)
                printf("jobs missing in the history since gpuqd started: %llu\n",
                       (unsigned long long)status->history_lost);

        printf("\n");
        r = status_print_devices(status);
        if (r < 0)
                return r;

        printf("\n");
        r = status_print_workers(status);
        if (r < 0)
                return r;

        printf("\n");
        return status_print_users(status);
}

static int status_run(Cli *cli, int argc, char **argv) {
        gpuq_status *status = NULL;
        bool is_verbose = false;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                is_verbose = true;
        if (r < 0)
                return cli->code;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);

        r = cli_connect(cli);
        if (r)
                return r;
        r = gpuq_get_status(cli->client, &status);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        if (cli->json)
                status_print_json(status);
        else
                r = status_print(status, is_verbose);
        if (r >= 0)
                r = status->n_devices ? EXIT_OK : EXIT_NO_DAEMON;
        gpuq_status_free(status);
        return r < 0 ? cli_no_memory(cli) : r;
}

static const struct option status_options[] = {
        {"verbose", no_argument, NULL, STATUS_VERBOSE},
        VERB_OPTIONS,
};

const Verb verb_status = {
        .name = "status",
        .arguments = "[OPTION...]",
        .summary = "show driver, devices, workers, and users with their share",
        .help = "      --verbose          also which rights gpuqd lacks here\n",
        .shorts = "",
        .options = status_options,
        .run = status_run,
};
