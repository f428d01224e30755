/* SPDX-License-Identifier: Apache-2.0 */
#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"
#include "util/human.h"
#include "limit.h"
#include "table.h"

#define TOP_PART 4u /* a table of devices or users takes at most 1/TOP_PART of the rows */

typedef struct TopUser {
        const gpuq_user_status *status;
        double ended_s; /* jobs per second; < 0: not known */
} TopUser;

typedef struct TopJob {
        const gpuq_queue_entry *entry;
        size_t rank; /* its user's */
        bool is_running;
} TopJob;

static const char *dash(const char *text) {
        return *text ? text : "-";
}

/* ---- rates ---------------------------------------------------------------------- */

static uint64_t user_n_ended(const gpuq_user_status *user) {
        return user->done + user->failed + user->cancelled;
}

static const gpuq_user_status *user_find(const gpuq_status *status, uint32_t uid) {
        for (size_t i = 0; i < status->n_users; i++)
                if (status->users[i].uid == uid)
                        return &status->users[i];
        return NULL;
}

/* The counts begin anew when gpuqd was restarted or had forgotten the user. */
static double user_rate(const TopView *view, const gpuq_user_status *user) {
        const gpuq_user_status *before;
        uint64_t n_before;

        if (!view->before || view->status->uptime_us <= view->before->uptime_us)
                return -1;
        before = user_find(view->before, user->uid);
        n_before = before ? user_n_ended(before) : 0;
        if (user_n_ended(user) < n_before)
                return 0;
        return (double)(user_n_ended(user) - n_before) * 1e6 /
               (double)(view->status->uptime_us - view->before->uptime_us);
}

static Human rate_text(double rate) {
        Human human = {"-"};

        if (rate >= 0)
                snprintf(human.text, sizeof(human.text), rate < 10 ? "%.1f" : "%.0f", rate);
        return human;
}

/* ---- users ---------------------------------------------------------------------- */

static int user_compare(const void *left, const void *right, void *userdata) {
        const gpuq_user_status *a = ((const TopUser *)left)->status;
        const gpuq_user_status *b = ((const TopUser *)right)->status;
        uint64_t n_a = (uint64_t)a->running + a->queued, n_b = (uint64_t)b->running + b->queued;
        TopSort sort = *(const TopSort *)userdata;
        int by_name = strcmp(a->user, b->user);

        if (sort == TOP_SORT_SHARE && a->share != b->share)
                return a->share > b->share ? -1 : 1;
        if (sort == TOP_SORT_WAIT && a->waited.p99_us != b->waited.p99_us)
                return a->waited.p99_us > b->waited.p99_us ? -1 : 1;
        if (sort != TOP_SORT_NAME && n_a != n_b)
                return n_a > n_b ? -1 : 1;
        return by_name ? by_name : (a->uid > b->uid) - (a->uid < b->uid);
}

static int users_new(const TopView *view, TopUser **ret_users, size_t *ret_n_users) {
        const gpuq_status *status = view->status;
        TopSort sort = view->sort;
        size_t n_users = 0;
        TopUser *users;

        users = calloc(status->n_users + 1, sizeof(*users));
        if (!users)
                return -ENOMEM;
        for (size_t i = 0; i < status->n_users; i++) {
                const gpuq_user_status *user = &status->users[i];

                if (view->uid == TOP_ALL || view->uid == user->uid)
                        users[n_users++] = (TopUser){user, user_rate(view, user)};
        }
        qsort_r(users, n_users, sizeof(*users), user_compare, &sort);
        *ret_users = users;
        *ret_n_users = n_users;
        return 0;
}

/* ---- parts ---------------------------------------------------------------------- */

/* Rows of a table that may take a part of the screen. */
static size_t part_rows(const TopView *view, size_t n) {
        return view->rows ? MIN(n, (size_t)MAX(view->rows / TOP_PART, 1u)) : n;
}

static void write_head(FILE *stream, const TopView *view) {
        const gpuq_status *status = view->status;
        double rate = view->before && status->uptime_us > view->before->uptime_us ? 0 : -1;
        char text[512];

        for (size_t i = 0; i < status->n_users && rate >= 0; i++)
                rate += user_rate(view, &status->users[i]);
        snprintf(text, sizeof(text), "gpuqd %s, up %s: %u waiting, %u running, %s jobs/s",
                 status->daemon, human_us(status->uptime_us).text, status->queued, status->running,
                 rate_text(rate).text);
        fprintf(stream, "%s\n", text_clean_line(text));
        snprintf(text, sizeof(text), "driver %s %s, %s", status->driver, status->driver_version,
                 status->state);
        fprintf(stream, "%s\n", text_clean_line(text));
        if (view->line)
                fprintf(stream, "%s\n", view->line);
        fputc('\n', stream);
}

/* @unit: behind a number; a value below 0 is unknown. */
static void reading_cell(Table *table, int value, const char *unit) {
        if (value < 0)
                table_cell(table, "-");
        else
                table_cell(table, "%d%s", value, unit);
}

static void power_cell(Table *table, const NvmlReading *reading) {
        if (reading->power < 0 || reading->power_max < 0)
                reading_cell(table, reading->power, " W");
        else
                table_cell(table, "%d/%d W", reading->power, reading->power_max);
}

/* NVML knows better what is in use: it includes programs that gpuqd does not serve, and is of now. */
static void memory_cells(Table *table, const gpuq_device_status *device,
                         const NvmlReading *reading) {
        uint64_t used = reading->memory_used ? reading->memory_used : device->memory_used;
        uint64_t total = reading->memory_used ? reading->memory_total : device->memory_total;

        table_cell(table, "%s", used ? human_bytes(used).text : "-");
        table_cell(table, "%s", used ? human_bytes(total > used ? total - used : 0).text : "-");
}

static void device_row(Table *table, const gpuq_device_status *device, const NvmlReading *reading) {
        table_row(table, strcmp(device->state, "ready") == 0 ? TABLE_GOOD : TABLE_BAD);
        table_cell(table, "%u", device->index);
        table_cell(table, "%s", device->name);
        table_cell(table, "%s", device->state);
        reading_cell(table, reading->utilization, "%");
        memory_cells(table, device, reading);
        reading_cell(table, reading->temperature, " C");
        power_cell(table, reading);
        table_cell(table, "%u", device->queued);
        table_cell(table, "%u", device->running);
}

static int write_devices(FILE *stream, const TopView *view) {
        static const TableColumn columns[] = {
                {"DEV", .right = true},     {"NAME", .shorten = true},   {"STATE", .shorten = true},
                {"UTIL", .right = true},    {"MEM USED", .right = true}, {"FREE", .right = true},
                {"TEMP", .right = true},    {"POWER", .right = true},    {"QUEUED", .right = true},
                {"RUNNING", .right = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < part_rows(view, view->status->n_devices); i++)
                device_row(table, &view->status->devices[i], &view->readings[i]);
        return table_print_to(table, stream, view->columns);
}

static void wait_cell(Table *table, const gpuq_user_status *user, uint64_t us) {
        table_cell(table, "%s", user->has_waited ? human_us(us).text : "-");
}

#define LIMIT_PART_MIN 0.005 /* that is not shown as 0 % */

/* The limit that the user will reach first. Return: NULL: little is used of any, or gpuqd does not tell. */
static const gpuq_user_limit *user_limit(const gpuq_status *status, uint32_t uid) {
        const gpuq_user_limit *first = NULL;

        for (size_t i = 0; i < status->n_limits; i++) {
                const gpuq_user_limit *limit = &status->limits[i];

                if (limit->uid == uid && limit_part(limit) >= LIMIT_PART_MIN &&
                    (!first || limit_part(limit) > limit_part(first)))
                        first = limit;
        }
        return first;
}

static void limit_first_cell(Table *table, const gpuq_user_limit *limit) {
        if (limit)
                table_cell(table, "%s %.0f%%", limit->key, limit_part(limit) * 100);
        else
                table_cell(table, "-");
}

static void user_row(Table *table, const gpuq_status *whole, const TopUser *user) {
        const gpuq_user_status *status = user->status;
        const gpuq_user_limit *limit = user_limit(whole, status->uid);

        table_row(table, limit && !limit->left ? TABLE_BAD : TABLE_PLAIN);
        table_cell(table, "%s", dash(status->user));
        table_cell(table, "%.0f%%", status->share * 100);
        table_cell(table, "%g", status->weight);
        table_cell(table, "%u", status->queued);
        table_cell(table, "%u", status->running);
        table_cell(table, "%s", rate_text(user->ended_s).text);
        wait_cell(table, status, status->waited.median_us);
        wait_cell(table, status, status->waited.p99_us);
        limit_first_cell(table, limit);
        table_cell(table, "%s", human_us((uint64_t)(status->gpu_seconds * 1e6)).text);
        table_cell(table, "%" PRIu64, status->failed);
        table_cell(table, "%" PRIu64, status->done);
}

static int write_users(FILE *stream, const TopView *view, const TopUser *users, size_t n_users) {
        static const TableColumn columns[] = {
                {"USER", .shorten = true},
                {"SHARE", .right = true},
                {"WEIGHT", .right = true},
                {"QUEUED", .right = true},
                {"RUNNING", .right = true},
                {"JOBS/S", .right = true},
                {"WAIT P50", .right = true},
                {"WAIT P99", .right = true},
                {"LIMIT"},
                {"GPU TIME", .right = true, .spare = true},
                {"FAILED", .right = true, .spare = true},
                {"DONE", .right = true, .spare = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < part_rows(view, n_users); i++)
                user_row(table, view->status, &users[i]);
        return table_print_to(table, stream, view->columns);
}

/* ---- limits --------------------------------------------------------------------- */

static int limit_compare(const void *left, const void *right) {
        const gpuq_user_limit *a = *(const gpuq_user_limit *const *)left,
                              *b = *(const gpuq_user_limit *const *)right;
        double part_a = limit_part(a), part_b = limit_part(b);

        if (part_a != part_b)
                return part_a > part_b ? -1 : 1;
        return a < b ? -1 : 1; /* as gpuqd sent them */
}

/* Return: how many of them there are. */
static size_t limits_of(const gpuq_status *status, int64_t uid, const gpuq_user_limit **limits) {
        size_t n = 0;

        for (size_t i = 0; i < status->n_limits; i++)
                if (status->limits[i].uid == uid)
                        limits[n++] = &status->limits[i];
        qsort(limits, n, sizeof(const gpuq_user_limit *), limit_compare);
        return n;
}

/* Those of the user that is shown alone, the one that will be reached first at the top. */
static int write_limits(FILE *stream, const TopView *view) {
        static const TableColumn columns[] = {
                {"LIMIT"},
                {"USED", .right = true},
                {"ALLOWED", .right = true},
                {"LEFT", .right = true},
                {"WHAT", .wrap = true},
        };
        _cleanup_(freep) const gpuq_user_limit **limits = NULL;
        _cleanup_(table_freep) Table *table = NULL;
        size_t n;
        int r;

        limits = calloc(view->status->n_limits + 1, sizeof(*limits));
        if (!limits)
                return -ENOMEM;
        n = limits_of(view->status, view->uid, limits);
        if (!n)
                return 0;
        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < part_rows(view, n); i++) {
                table_row(table, limits[i]->left ? TABLE_PLAIN : TABLE_BAD);
                limit_cells(table, limits[i]);
        }
        fputc('\n', stream);
        return table_print_to(table, stream, view->columns);
}

/* ---- jobs ----------------------------------------------------------------------- */

static void device_cell(Table *table, int device) {
        if (device < 0)
                table_cell(table, "-");
        else
                table_cell(table, "%d", device);
}

static void job_row(Table *table, const TopJob *job) {
        const gpuq_queue_entry *entry = job->entry;
        bool running = job->is_running;
        char id[24];

        table_row(table, running ? TABLE_GOOD : TABLE_PLAIN);
        table_cell(table, "%s", gpuq_id_format(entry->id, id));
        table_cell(table, "%s", dash(entry->user));
        table_cell(table, "%s", dash(*entry->label ? entry->label : entry->kernel));
        table_cell(table, "%s", human_us(running ? entry->ran_us : entry->waited_us).text);
        device_cell(table, entry->device);
        table_cell(table, "%s%s%s", running ? "running" : "waiting", *entry->reason ? ": " : "",
                   entry->reason);
}

static void module_row(Table *table, const gpuq_queue_module *module) {
        table_row(table, TABLE_PLAIN);
        table_cell(table, "-");
        table_cell(table, "%s", dash(module->user));
        table_cell(table, "%s", dash(module->name));
        table_cell(table, "%s", human_us(module->waited_us).text);
        device_cell(table, module->device);
        table_cell(table, "loading: %s", module->reason);
}

static int job_compare(const void *left, const void *right) {
        const TopJob *a = left, *b = right;

        if (a->is_running != b->is_running)
                return a->is_running ? -1 : 1;
        if (a->rank != b->rank)
                return a->rank < b->rank ? -1 : 1;
        return a->entry < b->entry ? -1 : 1;
}

/* Return: where the user is among @users. */
static size_t user_rank(const TopUser *users, size_t n_users, uint32_t uid) {
        size_t rank = 0;

        while (rank < n_users && users[rank].status->uid != uid)
                rank++;
        return rank;
}

/* Running ones first; then in the order of users, and those of a user in gpuqd's. */
static int jobs_new(const TopView *view, const TopUser *users, size_t n_users, TopJob **ret_jobs) {
        const gpuq_queue *queue = view->queue;
        TopJob *jobs;

        jobs = calloc(queue->n_entries + 1, sizeof(*jobs));
        if (!jobs)
                return -ENOMEM;
        for (size_t i = 0; i < queue->n_entries; i++) {
                const gpuq_queue_entry *entry = &queue->entries[i];
                bool same = i > 0 && entry->uid == queue->entries[i - 1].uid;

                jobs[i] = (TopJob){
                        .entry = entry,
                        .rank = same ? jobs[i - 1].rank : user_rank(users, n_users, entry->uid),
                        .is_running = strcmp(entry->state, "running") == 0,
                };
        }
        qsort(jobs, queue->n_entries, sizeof(*jobs), job_compare);
        *ret_jobs = jobs;
        return 0;
}

static int write_jobs(FILE *stream, const TopView *view, const TopUser *users, size_t n_users) {
        static const TableColumn columns[] = {
                {"ID", .right = true},   {"USER", .shorten = true}, {"LABEL", .shorten = true},
                {"TIME", .right = true}, {"DEV", .right = true},    {"STATE", .wrap = true},
        };
        size_t n_left = view->rows ? view->rows : SIZE_MAX;
        _cleanup_(table_freep) Table *table = NULL;
        _cleanup_(freep) TopJob *jobs = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        r = jobs_new(view, users, n_users, &jobs);
        if (r < 0)
                return r;
        for (size_t i = 0; i < view->queue->n_entries && n_left; i++, n_left--)
                job_row(table, &jobs[i]);
        for (size_t i = 0; i < view->queue->n_modules && n_left; i++, n_left--)
                module_row(table, &view->queue->modules[i]);
        return table_print_to(table, stream, view->columns);
}

int top_write(FILE *stream, const TopView *view) {
        _cleanup_(freep) TopUser *users = NULL;
        size_t n_users;
        int r;

        r = users_new(view, &users, &n_users);
        if (r < 0)
                return r;

        write_head(stream, view);
        r = write_devices(stream, view);
        if (r < 0)
                return r;
        fputc('\n', stream);
        r = write_users(stream, view, users, n_users);
        if (r == 0 && view->uid != TOP_ALL)
                r = write_limits(stream, view);
        if (r < 0)
                return r;
        fputc('\n', stream);
        return write_jobs(stream, view, users, n_users);
}
