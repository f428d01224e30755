/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq status - devices, users, and the caller's own limits
 */

#include <string.h>

#include "json.h"
#include "status.h"
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
                json_number(object, "memory_used", device->memory_used);
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
        json_number(object, "direct", counters->direct);
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

/* null: no job ended in the last minute. */
static void status_json_waited(struct json_object *object, const gpuq_user_status *user) {
        struct json_object *member;

        if (!user->has_waited) {
                json_text(object, "waited_each_us", NULL);
                return;
        }
        member = json_member(object, "waited_each_us");
        json_number(member, "median", user->waited.median_us);
        json_number(member, "p95", user->waited.p95_us);
        json_number(member, "p99", user->waited.p99_us);
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
                status_json_waited(object, user);
                json_text(object, "sms", *user->sms ? user->sms : NULL);
        }
}

/* UINT64_MAX: null. */
static void status_json_bound(struct json_object *object, const char *name, uint64_t value) {
        if (value == UINT64_MAX)
                json_text(object, name, NULL);
        else
                json_number(object, name, value);
}

static void status_json_limits(struct json_object *document, const gpuq_status *status) {
        struct json_object *array = json_array(document, "limits");

        for (size_t i = 0; i < status->n_limits; i++) {
                const gpuq_user_limit *limit = &status->limits[i];
                struct json_object *object = json_array_object(array);

                json_number(object, "uid", limit->uid);
                json_text(object, "key", limit->key);
                status_json_bound(object, "limit", limit->limit);
                json_number(object, "used", limit->used);
                status_json_bound(object, "left", limit->left);
        }
}

static void status_json_slurm_jobs(struct json_object *document, const gpuq_status *status) {
        struct json_object *array = json_array(document, "slurm_jobs");

        for (size_t i = 0; i < status->n_slurm_jobs; i++) {
                const gpuq_slurm_job_status *job = &status->slurm_jobs[i];
                struct json_object *object = json_array_object(array);

                json_number(object, "number", job->number);
                json_number(object, "uid", job->uid);
                json_text(object, "account", *job->account ? job->account : NULL);
                json_real(object, "weight", job->weight);
                json_number(object, "clients", job->clients);
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
        json_text(document, "isolation", status->isolation);
        json_text(document, "history_problem", status->history_problem);
        json_number(document, "history_lost", status->history_lost);
        json_number(document, "queued", status->queued);
        json_number(document, "running", status->running);
        status_json_devices(document, status);
        status_json_workers(document, status);
        status_json_users(document, status);
        json_number(document, "uid", status->uid);
        status_json_limits(document, status);
        status_json_slurm_jobs(document, status);
        json_print(document);
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
                r = status_write(stdout, status, is_verbose, table_terminal());
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
        .summary = "show the devices, the users with their share, and your limits",
        .help = "      --verbose          show also workers, counters, jobs of Slurm, and the "
                "limits of other users\n",
        .shorts = "",
        .options = status_options,
        .run = status_run,
};
