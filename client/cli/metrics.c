/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"
#include "util/macro.h"

typedef struct Row {
        char uid[12]; /* "": of several users */
        gpuq_user_status user;
} Row;

typedef struct Metrics {
        FILE *stream;
        const gpuq_status *status;
        Row *rows;
        size_t n_rows;
} Metrics;

/* ---- text ---------------------------------------------------------------------- */

/* @unit: NULL: it has none. */
static void family(const Metrics *metrics, const char *name, const char *type, const char *unit,
                   const char *help) {
        fprintf(metrics->stream, "# TYPE %s %s\n", name, type);
        if (unit)
                fprintf(metrics->stream, "# UNIT %s %s\n", name, unit);
        fprintf(metrics->stream, "# HELP %s %s\n", name, help);
}

/* A name comes from the system's database of users or from a driver, so it may contain anything. */
static void label(FILE *stream, char before, const char *name, const char *value) {
        char *clean = strdup(value);

        fprintf(stream, "%c%s=\"", before, name);
        for (const char *p = clean ? text_clean_line(clean) : "?"; *p; p++)
                fprintf(stream, *p == '\\' || *p == '"' ? "\\%c" : "%c", *p);
        fputc('"', stream);
        free(clean);
}

static void sample_device(const Metrics *metrics, const char *name, unsigned device,
                          const char *more, const char *value) {
        fprintf(metrics->stream, "%s{device=\"%u\"", name, device);
        if (more)
                label(metrics->stream, ',', more, value);
        fputs("} ", metrics->stream);
}

static void sample_user(const Metrics *metrics, const char *name, const Row *row, const char *more,
                        const char *value) {
        fputs(name, metrics->stream);
        label(metrics->stream, '{', "user", row->user.user);
        label(metrics->stream, ',', "uid", row->uid);
        if (more)
                label(metrics->stream, ',', more, value);
        fputs("} ", metrics->stream);
}

static void integer(const Metrics *metrics, uint64_t value) {
        fprintf(metrics->stream, "%" PRIu64 "\n", value);
}

static void real(const Metrics *metrics, double value) {
        fprintf(metrics->stream, "%.15g\n", value);
}

/* ---- gpuqd ---------------------------------------------------------------------- */

static void write_daemon(const Metrics *metrics) {
        const gpuq_status *status = metrics->status;
        unsigned n_sessions = 0;

        for (size_t i = 0; i < status->n_users; i++)
                n_sessions += status->users[i].sessions;

        family(metrics, "gpuq_daemon", "info", NULL, "Version of gpuqd, and the driver in use.");
        fputs("gpuq_daemon_info", metrics->stream);
        label(metrics->stream, '{', "version", status->daemon);
        label(metrics->stream, ',', "driver", status->driver);
        label(metrics->stream, ',', "driver_version", status->driver_version);
        fputs("} 1\n", metrics->stream);

        family(metrics, "gpuq_daemon_ready", "gauge", NULL,
               "1: gpuqd runs jobs; 0: it has no usable device.");
        fputs("gpuq_daemon_ready ", metrics->stream);
        integer(metrics, strcmp(status->state, "ready") == 0);

        family(metrics, "gpuq_daemon_uptime_seconds", "gauge", "seconds",
               "Time since the start of the supervisor of gpuqd.");
        fputs("gpuq_daemon_uptime_seconds ", metrics->stream);
        real(metrics, (double)status->uptime_us / 1e6);

        family(metrics, "gpuq_daemon_sessions", "gauge", NULL, "Connections of clients.");
        fputs("gpuq_daemon_sessions ", metrics->stream);
        integer(metrics, n_sessions);

        family(metrics, "gpuq_daemon_history_lost_jobs", "counter", NULL,
               "Ended jobs that are missing in the history.");
        fputs("gpuq_daemon_history_lost_jobs_total ", metrics->stream);
        integer(metrics, status->history_lost);
}

/* ---- devices -------------------------------------------------------------------- */

typedef enum DeviceState {
        DEVICE_READY,
        DEVICE_DRAINED,
        DEVICE_FAILED,
        DEVICE_UNAVAILABLE,
        _DEVICE_STATE_N,
} DeviceState;

/* The daemon's text has the reason, which would make a series of each. */
static DeviceState device_state(const gpuq_device_status *device) {
        if (device->drained)
                return strcmp(device->drained, "admin") == 0 ? DEVICE_DRAINED : DEVICE_FAILED;
        return strcmp(device->state, "ready") == 0 ? DEVICE_READY : DEVICE_UNAVAILABLE;
}

static void write_device_states(const Metrics *metrics) {
        static const char *const names[] = {[DEVICE_READY] = "ready",
                                            [DEVICE_DRAINED] = "drained",
                                            [DEVICE_FAILED] = "failed",
                                            [DEVICE_UNAVAILABLE] = "unavailable"};

        family(metrics, "gpuq_device_state", "stateset", NULL,
               "1: the state of the device; an administrator drained it, or gpuqd because it "
               "failed.");
        for (size_t i = 0; i < metrics->status->n_devices; i++) {
                const gpuq_device_status *device = &metrics->status->devices[i];

                for (DeviceState state = 0; state < _DEVICE_STATE_N; state++) {
                        sample_device(metrics, "gpuq_device_state", device->index,
                                      "gpuq_device_state", names[state]);
                        integer(metrics, device_state(device) == state);
                }
        }
}

static void write_device_info(const Metrics *metrics) {
        family(metrics, "gpuq_device", "info", NULL, "Name and addresses of the device.");
        for (size_t i = 0; i < metrics->status->n_devices; i++) {
                const gpuq_device_status *device = &metrics->status->devices[i];

                fprintf(metrics->stream, "gpuq_device_info{device=\"%u\"", device->index);
                label(metrics->stream, ',', "name", device->name);
                label(metrics->stream, ',', "uuid", device->uuid);
                label(metrics->stream, ',', "pci", device->pci);
                fputs("} 1\n", metrics->stream);
        }
}

static void write_device_jobs(const Metrics *metrics) {
        family(metrics, "gpuq_device_jobs", "gauge", NULL, "Unfinished jobs on the device.");
        for (size_t i = 0; i < metrics->status->n_devices; i++) {
                const gpuq_device_status *device = &metrics->status->devices[i];

                sample_device(metrics, "gpuq_device_jobs", device->index, "state", "waiting");
                integer(metrics, device->queued);
                sample_device(metrics, "gpuq_device_jobs", device->index, "state", "running");
                integer(metrics, device->running);
        }
}

typedef uint64_t (*DeviceValue)(const gpuq_status *status, const gpuq_device_status *device);

static uint64_t value_memory(const gpuq_status *status, const gpuq_device_status *device) {
        return device->memory_total;
}

static uint64_t value_arenas(const gpuq_status *status, const gpuq_device_status *device) {
        return device->memory_arenas;
}

static uint64_t value_quanta(const gpuq_status *status, const gpuq_device_status *device) {
        return device->quanta;
}

static uint64_t value_overruns(const gpuq_status *status, const gpuq_device_status *device) {
        return device->overruns;
}

static uint64_t value_workers(const gpuq_status *status, const gpuq_device_status *device) {
        uint64_t n = 0;

        for (size_t i = 0; i < status->n_workers; i++)
                n += status->workers[i].device == device->index;
        return n;
}

static uint64_t value_worker_bytes(const gpuq_status *status, const gpuq_device_status *device) {
        uint64_t n = 0;

        for (size_t i = 0; i < status->n_workers; i++)
                if (status->workers[i].device == device->index)
                        n += status->workers[i].memory;
        return n;
}

static void write_device_values(const Metrics *metrics) {
        static const struct {
                const char *name, *type, *unit, *help;
                DeviceValue value;
        } values[] = {
                {"gpuq_device_memory_bytes", "gauge", "bytes", "Memory of the device.",
                 value_memory},
                {"gpuq_device_buffer_bytes", "gauge", "bytes",
                 "Memory of the device that buffers use.", value_arenas},
                {"gpuq_device_worker_bytes", "gauge", "bytes",
                 "Memory of the device that workers use.", value_worker_bytes},
                {"gpuq_device_workers", "gauge", NULL, "Worker processes.", value_workers},
                {"gpuq_device_time_slices", "counter", NULL,
                 "Time slices in which one user had the device alone.", value_quanta},
                {"gpuq_device_overruns", "counter", NULL,
                 "Time slices that ended with jobs still in flight.", value_overruns},
        };

        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                bool is_counter = strcmp(values[i].type, "counter") == 0;
                char name[64];

                snprintf(name, sizeof(name), "%s%s", values[i].name, is_counter ? "_total" : "");
                family(metrics, values[i].name, values[i].type, values[i].unit, values[i].help);
                for (size_t k = 0; k < metrics->status->n_devices; k++) {
                        const gpuq_device_status *device = &metrics->status->devices[k];

                        sample_device(metrics, name, device->index, NULL, NULL);
                        integer(metrics, values[i].value(metrics->status, device));
                }
        }
}

/* Devices whose errors the daemon does not read have no sample. */
static void write_device_xids(const Metrics *metrics) {
        family(metrics, "gpuq_device_xids", "counter", NULL,
               "Errors of the device that NVIDIA's driver logged.");
        for (size_t i = 0; i < metrics->status->n_devices; i++) {
                const gpuq_device_status *device = &metrics->status->devices[i];

                if (device->xids < 0)
                        continue;
                sample_device(metrics, "gpuq_device_xids_total", device->index, NULL, NULL);
                integer(metrics, (uint64_t)device->xids);
        }
}

/* ---- users ---------------------------------------------------------------------- */

static int row_compare(const void *left, const void *right) {
        const gpuq_user_status *a = &((const Row *)left)->user, *b = &((const Row *)right)->user;
        uint64_t n_a = a->done + a->failed + a->cancelled, n_b = b->done + b->failed + b->cancelled;

        if (a->gpu_seconds != b->gpu_seconds)
                return a->gpu_seconds > b->gpu_seconds ? -1 : 1;
        if (n_a != n_b)
                return n_a > n_b ? -1 : 1;
        return a->uid < b->uid ? -1 : a->uid > b->uid;
}

static void row_add(gpuq_user_status *sum, const gpuq_user_status *user) {
        sum->share += user->share;
        sum->gpu_seconds += user->gpu_seconds;
        sum->sessions += user->sessions;
        sum->queued += user->queued;
        sum->running += user->running;
        sum->arena_bytes += user->arena_bytes;
        sum->device_bytes += user->device_bytes;
        sum->done += user->done;
        sum->failed += user->failed;
        sum->cancelled += user->cancelled;
}

/* Ordered by what only grows, so that users seldom change places with the sum. */
static int rows_new(Metrics *metrics) {
        const gpuq_status *status = metrics->status;

        metrics->rows = calloc(status->n_users + 1, sizeof(*metrics->rows));
        if (!metrics->rows)
                return -ENOMEM;

        for (size_t i = 0; i < status->n_users; i++) {
                Row *row = &metrics->rows[i];

                row->user = status->users[i];
                snprintf(row->uid, sizeof(row->uid), "%" PRIu32, row->user.uid);
        }
        qsort(metrics->rows, status->n_users, sizeof(*metrics->rows), row_compare);
        metrics->n_rows = status->n_users;
        if (status->n_users <= METRICS_USERS_MAX)
                return 0;

        metrics->n_rows = METRICS_USERS_MAX + 1;
        for (size_t i = metrics->n_rows; i < status->n_users; i++)
                row_add(&metrics->rows[METRICS_USERS_MAX].user, &metrics->rows[i].user);
        metrics->rows[METRICS_USERS_MAX].user.user = "other";
        metrics->rows[METRICS_USERS_MAX].uid[0] = '\0';
        return 0;
}

static void write_user_jobs(const Metrics *metrics) {
        family(metrics, "gpuq_user_jobs", "gauge", NULL, "Unfinished jobs of the user.");
        for (size_t i = 0; i < metrics->n_rows; i++) {
                const Row *row = &metrics->rows[i];

                sample_user(metrics, "gpuq_user_jobs", row, "state", "waiting");
                integer(metrics, row->user.queued);
                sample_user(metrics, "gpuq_user_jobs", row, "state", "running");
                integer(metrics, row->user.running);
        }

        family(metrics, "gpuq_user_jobs_ended", "counter", NULL, "Jobs of the user that ended.");
        for (size_t i = 0; i < metrics->n_rows; i++) {
                const Row *row = &metrics->rows[i];

                sample_user(metrics, "gpuq_user_jobs_ended_total", row, "outcome", "done");
                integer(metrics, row->user.done);
                sample_user(metrics, "gpuq_user_jobs_ended_total", row, "outcome", "failed");
                integer(metrics, row->user.failed);
                sample_user(metrics, "gpuq_user_jobs_ended_total", row, "outcome", "cancelled");
                integer(metrics, row->user.cancelled);
        }
}

static double user_gpu_seconds(const gpuq_user_status *user) {
        return user->gpu_seconds;
}

static double user_share(const gpuq_user_status *user) {
        return user->share;
}

static double user_sessions(const gpuq_user_status *user) {
        return user->sessions;
}

static double user_host_bytes(const gpuq_user_status *user) {
        return (double)user->arena_bytes;
}

static double user_device_bytes(const gpuq_user_status *user) {
        return (double)user->device_bytes;
}

static void write_user_values(const Metrics *metrics) {
        static const struct {
                const char *name, *type, *unit, *help;
                double (*value)(const gpuq_user_status *user);
        } values[] = {
                {"gpuq_user_gpu_seconds", "counter", "seconds", "GPU time of the user.",
                 user_gpu_seconds},
                {"gpuq_user_share_ratio", "gauge", "ratio",
                 "The user's part of the GPU time of the last minute.", user_share},
                {"gpuq_user_sessions", "gauge", NULL, "Connections of the user.", user_sessions},
                {"gpuq_user_host_buffer_bytes", "gauge", "bytes",
                 "Memory of the machine in the user's buffers.", user_host_bytes},
                {"gpuq_user_device_buffer_bytes", "gauge", "bytes",
                 "Memory of devices in the user's buffers.", user_device_bytes},
        };

        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                bool is_counter = strcmp(values[i].type, "counter") == 0;
                char name[64];

                snprintf(name, sizeof(name), "%s%s", values[i].name, is_counter ? "_total" : "");
                family(metrics, values[i].name, values[i].type, values[i].unit, values[i].help);
                for (size_t k = 0; k < metrics->n_rows; k++) {
                        sample_user(metrics, name, &metrics->rows[k], NULL, NULL);
                        real(metrics, values[i].value(&metrics->rows[k].user));
                }
        }
}

int metrics_write(FILE *stream, const gpuq_status *status) {
        Metrics metrics = {.stream = stream, .status = status};
        int r;

        r = rows_new(&metrics);
        if (r < 0)
                return r;

        write_daemon(&metrics);
        write_device_info(&metrics);
        write_device_states(&metrics);
        write_device_values(&metrics);
        write_device_jobs(&metrics);
        write_device_xids(&metrics);
        write_user_jobs(&metrics);
        write_user_values(&metrics);
        fputs("# EOF\n", stream);
        free(metrics.rows);
        return 0;
}
