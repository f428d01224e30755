/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"
#include "util/human.h"
#include "limit.h"
#include "table.h"

typedef struct StatusText {
        FILE *stream;
        const gpuq_status *status;
        size_t width;
} StatusText;

static int status_text(const StatusText *text, const char *format, ...) _printf_(2, 3);

static int status_text(const StatusText *text, const char *format, ...) {
        char line[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        return table_print_text(text->stream, line, text->width);
}

/* A blank line, then the table. */
static int status_table(const StatusText *text, Table *table) {
        fputc('\n', text->stream);
        return table_print_to(table, text->stream, text->width);
}

/* The daemon reports the names of users, but only the uid of a worker's user. */
static const char *status_user(const gpuq_status *status, uint32_t uid) {
        for (size_t i = 0; i < status->n_users; i++)
                if (status->users[i].uid == uid)
                        return status->users[i].user;
        return "-";
}

/* ---- devices -------------------------------------------------------------------- */

/* The workers of one user are listed in any order, and an express worker is a second one. */
static bool status_is_first(const gpuq_status *status, size_t i) {
        const gpuq_worker_status *worker = &status->workers[i];

        for (size_t k = 0; k < i; k++)
                if (status->workers[k].running && status->workers[k].device == worker->device &&
                    status->workers[k].uid == worker->uid)
                        return false;
        return true;
}

/* The users with running jobs there, or "-". */
static void status_cell_runs(Table *table, const gpuq_status *status, unsigned device) {
        char names[256] = "";
        size_t n = 0;

        for (size_t i = 0; i < status->n_workers && n < sizeof(names); i++) {
                const gpuq_worker_status *worker = &status->workers[i];

                if (worker->device == device && worker->running && status_is_first(status, i))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
                                              status_user(status, worker->uid));
        }
        table_cell(table, "%s", n ? names : "-");
}

static void status_device_row(Table *table, const gpuq_status *status,
                              const gpuq_device_status *device) {
        uint64_t used = device->memory_used, total = device->memory_total;

        table_row(table, strcmp(device->state, "ready") == 0 ? TABLE_GOOD : TABLE_BAD);
        table_cell(table, "%u", device->index);
        table_cell(table, "%s", device->name);
        table_cell(table, "%s", device->state);
        table_cell(table, "%s", used ? human_bytes(used).text : "-");
        table_cell(table, "%s", used ? human_bytes(total > used ? total - used : 0).text : "-");
        table_cell(table, "%s", human_bytes(total).text);
        table_cell(table, "%u", device->running);
        table_cell(table, "%u", device->queued);
        status_cell_runs(table, status, device->index);
}

static int status_write_devices(const StatusText *text) {
        static const TableColumn columns[] = {
                {"DEV", .right = true},
                {"NAME", .shorten = true},
                {"STATE", .wrap = true},
                {"MEM USED", .right = true},
                {"FREE", .right = true},
                {"TOTAL", .right = true},
                {"RUNNING", .right = true},
                {"WAITING", .right = true},
                {"JOBS OF", .shorten = true, .spare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_devices; i++)
                status_device_row(table, text->status, &text->status->devices[i]);
        return status_table(text, table);
}

static int status_write_device_counters(const StatusText *text) {
        static const TableColumn columns[] = {
                {"DEV", .right = true},      {"ARENAS", .right = true}, {"QUANTA", .right = true},
                {"OVERRUNS", .right = true}, {"XIDS", .right = true},   {"PCI", .spare = true},
                {"UUID", .spare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_devices; i++) {
                const gpuq_device_status *device = &text->status->devices[i];

                table_row(table, TABLE_PLAIN);
                table_cell(table, "%u", device->index);
                table_cell(table, "%s", human_bytes(device->memory_arenas).text);
                table_cell(table, "%" PRIu64, device->quanta);
                table_cell(table, "%" PRIu64, device->overruns);
                if (device->xids < 0)
                        table_cell(table, "-");
                else
                        table_cell(table, "%" PRId64, device->xids);
                table_cell(table, "%s", device->pci);
                table_cell(table, "%s", device->uuid);
        }
        return status_table(text, table);
}

/* ---- workers -------------------------------------------------------------------- */

/* A spare worker has no user yet. */
static void status_cells_owner(Table *table, const gpuq_status *status,
                               const gpuq_worker_status *worker) {
        bool is_spare = strcmp(worker->state, "spare") == 0;

        if (is_spare)
                table_cell(table, "-");
        else
                table_cell(table, "%u", worker->uid);
        table_cell(table, "%s", is_spare ? "-" : status_user(status, worker->uid));
}

static void status_worker_row(Table *table, const gpuq_status *status,
                              const gpuq_worker_status *worker) {
        const gpuq_worker_counters *counters = &worker->counters;

        table_row(table, TABLE_PLAIN);
        table_cell(table, "%d", worker->pid);
        table_cell(table, "%u", worker->device);
        status_cells_owner(table, status, worker);
        table_cell(table, "%s%s", worker->state, worker->express ? " (express)" : "");
        table_cell(table, "%s", human_bytes(worker->memory).text);
        table_cell(table, "%u", worker->running);
        table_cell(table, "%u", worker->contexts);
        table_cell(table, "%" PRIu64, worker->jobs);
        table_cell(table, "%" PRIu64, counters->direct);
        table_cell(table, "%" PRIu64, counters->coalesced);
        table_cell(table, "%" PRIu64, counters->in_place);
        table_cell(table, "%" PRIu64, counters->graph_hits + counters->graph_misses);
}

static int status_write_workers(const StatusText *text) {
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
                {"DIRECT", .right = true, .spare = true},
                {"COALESCED", .right = true, .spare = true},
                {"IN PLACE", .right = true, .spare = true},
                {"GRAPHS", .right = true, .spare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_workers; i++)
                status_worker_row(table, text->status, &text->status->workers[i]);
        return status_table(text, table);
}

/* ---- users ---------------------------------------------------------------------- */

/* Few machines have users with a share of the SMs. */
static bool status_has_sms(const gpuq_status *status) {
        for (size_t i = 0; i < status->n_users; i++)
                if (*status->users[i].sms)
                        return true;
        return false;
}

static int status_write_users(const StatusText *text) {
        static const TableColumn columns[] = {
                {"USER", .shorten = true},    {"SHARE", .right = true},
                {"RUNNING", .right = true},   {"WAITING", .right = true},
                {"DONE", .right = true},      {"FAILED", .right = true},
                {"CANCELLED", .right = true}, {"HOST MEM", .right = true},
                {"DEV MEM", .right = true},   {"SMS", .right = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        bool has_sms = status_has_sms(text->status);
        int r;

        r = table_new(columns, ARRAY_SIZE(columns) - !has_sms, true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_users; i++) {
                const gpuq_user_status *user = &text->status->users[i];

                table_row(table, TABLE_PLAIN);
                table_cell(table, "%s", user->user);
                table_cell(table, "%.0f%%", user->share * 100);
                table_cell(table, "%u", user->running);
                table_cell(table, "%u", user->queued);
                table_cell(table, "%" PRIu64, user->done);
                table_cell(table, "%" PRIu64, user->failed);
                table_cell(table, "%" PRIu64, user->cancelled);
                table_cell(table, "%s", human_bytes(user->arena_bytes).text);
                table_cell(table, "%s", human_bytes(user->device_bytes).text);
                if (has_sms)
                        table_cell(table, "%s", *user->sms ? user->sms : "all");
        }
        return status_table(text, table);
}

static int status_write_user_counters(const StatusText *text) {
        static const TableColumn columns[] = {
                {"USER", .shorten = true},   {"UID", .right = true},
                {"WEIGHT", .right = true},   {"GPU TIME", .right = true},
                {"SESSIONS", .right = true}, {"MODULES", .right = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_users; i++) {
                const gpuq_user_status *user = &text->status->users[i];

                table_row(table, TABLE_PLAIN);
                table_cell(table, "%s", user->user);
                table_cell(table, "%u", user->uid);
                table_cell(table, "%g", user->weight);
                table_cell(table, "%s", human_us((uint64_t)(user->gpu_seconds * 1e6)).text);
                table_cell(table, "%u", user->sessions);
                table_cell(table, "%u", user->modules);
        }
        return status_table(text, table);
}

/* ---- jobs of Slurm -------------------------------------------------------------- */

static void status_slurm_row(Table *table, const gpuq_status *status,
                             const gpuq_slurm_job_status *job) {
        table_row(table, TABLE_PLAIN);
        table_cell(table, "%u", job->number);
        table_cell(table, "%s", status_user(status, job->uid));
        table_cell(table, "%s", *job->account ? job->account : "-");
        table_cell(table, "%g", job->weight);
        table_cell(table, "%u", job->clients);
}

/* Most machines have no Slurm. */
static int status_write_slurm_jobs(const StatusText *text) {
        static const TableColumn columns[] = {
                {"SLURM JOB", .right = true}, {"USER", .shorten = true},
                {"ACCOUNT", .shorten = true}, {"USER'S WEIGHT", .right = true},
                {"CLIENTS", .right = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        if (!text->status->n_slurm_jobs)
                return 0;
        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_slurm_jobs; i++)
                status_slurm_row(table, text->status, &text->status->slurm_jobs[i]);
        return status_table(text, table);
}

/* ---- limits --------------------------------------------------------------------- */

static void limit_row(Table *table, const gpuq_user_limit *limit, const char *user) {
        table_row(table, limit->left ? TABLE_PLAIN : TABLE_BAD);
        if (user)
                table_cell(table, "%s", user);
        limit_cells(table, limit);
}

/* @others: the other users' limits, with their names, instead of the caller's. */
static int status_write_limits(const StatusText *text, bool others) {
        static const TableColumn columns[] = {
                {"USER", .shorten = true}, {"LIMIT"},
                {"USED", .right = true},   {"ALLOWED", .right = true},
                {"LEFT", .right = true},   {"WHAT", .wrap = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        size_t n = 0;
        int r;

        r = table_new(columns + !others, ARRAY_SIZE(columns) - !others, true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < text->status->n_limits; i++) {
                const gpuq_user_limit *limit = &text->status->limits[i];

                if ((limit->uid == text->status->uid) == others)
                        continue;
                if (others && !limit->used && limit->left)
                        continue; /* nine for each user would hide those that matter */
                limit_row(table, limit, others ? status_user(text->status, limit->uid) : NULL);
                n++;
        }
        if (!n)
                return 0; /* a daemon that does not send them, or no other users */
        fprintf(text->stream, others ? "\nLimits of other users:\n" : "\nYour limits:\n");
        return table_print_to(table, text->stream, text->width);
}

/* ---- all of it ------------------------------------------------------------------ */

static int status_write_head(const StatusText *text, bool is_verbose) {
        const gpuq_status *status = text->status;
        int r;

        r = status_text(text, "gpuqd %s, up %s: %u waiting, %u running", status->daemon,
                        human_us(status->uptime_us).text, status->queued, status->running);
        if (r == 0)
                r = status_text(text, "driver %s %s, %s", status->driver, status->driver_version,
                                status->state);
        if (r == 0 && is_verbose && status->lacks)
                r = status_text(text, "%s", status->lacks);
        if (r == 0 && is_verbose && *status->isolation)
                r = status_text(text, "isolation: %s", status->isolation);
        if (r == 0 && *status->history_problem)
                r = status_text(text, "%s", status->history_problem);
        if (r == 0 && status->history_lost)
                r = status_text(text, "jobs missing in the history since gpuqd started: %" PRIu64,
                                status->history_lost);
        return r;
}

int status_write(FILE *stream, const gpuq_status *status, bool is_verbose, size_t width) {
        static int (*const verbose_parts[])(const StatusText *text) = {
                status_write_device_counters,
                status_write_workers,
                status_write_user_counters,
                status_write_slurm_jobs,
        };
        StatusText text = {.stream = stream, .status = status, .width = width};
        int r;

        r = status_write_head(&text, is_verbose);
        if (r == 0)
                r = status_write_devices(&text);
        if (r == 0)
                r = status_write_users(&text);
        if (r == 0)
                r = status_write_limits(&text, false);
        for (size_t i = 0; is_verbose && r == 0 && i < ARRAY_SIZE(verbose_parts); i++)
                r = verbose_parts[i](&text);
        if (r == 0 && is_verbose)
                r = status_write_limits(&text, true);
        return r;
}
