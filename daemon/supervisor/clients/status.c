/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `gpuq status` shows.
 */

#include "status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accounting_ops.h"
#include "jobs.h"
#include "util/list.h"
#include "registry.h"
#include "slurm_jobs.h"

/* The messages of one status reply, in one bump that ends with the request. */
#define REPORT_LACKS_PRIORITY                                                                      \
        "gpuqd may not raise its priority, so jobs take longer while other programs keep all "     \
        "cores busy; see RLIMIT_NICE in gpuqd(8)"

typedef struct ReportStatus {
        Engine *engine;
        const Clients *clients;
        ProtobufCAllocator *allocator;
        Gpuq__V1__Status status;
} ReportStatus;

static void *report_take(ReportStatus *report, size_t n, size_t size) {
        return report->allocator->alloc(report->allocator->allocator_data, n * size + 1);
}

static void report_device(const Device *device, Gpuq__V1__DeviceStatus *to) {
        gpuq__v1__device_status__init(to);
        to->index = device->index;
        to->name = device->name;
        to->uuid = device->uuid;
        to->pci = device->pci;
        to->state = (char *)device_state(device);
        to->drained = device->health.is_held                ? GPUQ__V1__DRAINED_BY__ADMIN
                      : !health_takes_jobs(&device->health) ? GPUQ__V1__DRAINED_BY__ITSELF
                                                            : GPUQ__V1__DRAINED_BY__NOBODY;
        to->memory_total = device->memory_total;
        to->memory_arenas = device->arena_bytes;
        if (device->used_bytes)
                to->memory_used = MAX(device->used_bytes, device->arena_bytes);
        to->queued = device->n_queued;
        to->running = device->n_running;
        to->quanta = device->quanta.n_quanta;
        to->overruns = device->quanta.n_overruns;
        to->xids = device->engine->reads_kernel_log ? device->n_xids + 1 : 0;
}

static int report_devices(ReportStatus *report) {
        size_t n = report->engine->n_devices;
        Gpuq__V1__DeviceStatus *devices = report_take(report, n, sizeof(*devices));
        Gpuq__V1__DeviceStatus **list = report_take(report, n, sizeof(*list));

        if (!devices || !list)
                return -ENOMEM;
        for (size_t i = 0; i < n; ++i) {
                report_device(&report->engine->devices[i], &devices[i]);
                list[i] = &devices[i];
        }
        report->status.devices = list;
        report->status.n_devices = n;
        return 0;
}

/* GPU-ns of the last minute, over all devices. */
static double report_recent(const User *user, uint64_t now_ns) {
        double recent = 0;

        for (size_t i = 0; i < user->n_lanes; ++i)
                if (user->lanes[i])
                        recent += shareuser_recent(&user->lanes[i]->share, now_ns);
        return recent;
}

static double report_usage(const User *user, uint64_t now_ns) {
        double usage = 0;

        for (size_t i = 0; i < user->n_lanes; ++i) {
                const Lane *lane = user->lanes[i];

                if (lane)
                        usage += fairshare_usage(lane->device->share, &lane->share, now_ns);
        }
        return usage;
}

/* Of the jobs that ended in the last minute. Return: NULL: there were none. */
static Gpuq__V1__Spread *report_waits(const User *user, uint64_t now_ns, Gpuq__V1__Spread *to) {
        Sketch waits;

        if (!waits_read(&user->totals.waits, now_ns, &waits))
                return NULL;
        gpuq__v1__spread__init(to);
        to->median = sketch_quantile(&waits, 0.5);
        to->p95 = sketch_quantile(&waits, 0.95);
        to->p99 = sketch_quantile(&waits, 0.99);
        return to;
}

static void report_user_status(const User *user, double total, uint64_t now_ns,
                               Gpuq__V1__UserStatus *to) {
        gpuq__v1__user_status__init(to);
        to->uid = user->uid;
        to->user = user->name;
        to->weight = user->limits.weight;
        to->share = total > 0 ? report_recent(user, now_ns) / total : 0;
        to->gpu_seconds = (double)user->totals.gpu_ns / 1e9;
        to->sessions = user->n_sessions;
        to->queued = user->n_waiting;
        to->running = user->n_running;
        to->arena_bytes = user->used[USER_ARENA_BYTES];
        to->device_bytes = user->used[USER_DEVICE_BYTES];
        to->modules = (uint32_t)user->used[USER_MODULES];
        to->usage_seconds = report_usage(user, now_ns) / 1e9;
        to->window_seconds = user_window_seconds(user, now_ns);
        to->done = user->totals.n_done;
        to->failed = user->totals.n_failed;
        to->cancelled = user->totals.n_cancelled;
}

/* As in gpuqd.conf; "": all, or no memory for the text. */
static char *report_sms(ReportStatus *report, const User *user) {
        Sms sms = user->person->limits.sms;
        char *text;

        if (sms_are_all(sms) || report->engine->config->isolation.shared)
                return "";
        text = report_take(report, SMS_TEXT, 1);
        return text ? (char *)sms_text(sms, text) : "";
}

static int report_users(ReportStatus *report) {
        size_t n = HASH_COUNT(report->engine->users), i = 0;
        Gpuq__V1__UserStatus *users = report_take(report, n, sizeof(*users));
        Gpuq__V1__UserStatus **list = report_take(report, n, sizeof(*list));
        Gpuq__V1__Spread *spreads = report_take(report, n, sizeof(*spreads));
        uint64_t now_ns = engine_now(report->engine);
        const User *user;
        double total = 0;

        if (!users || !list || !spreads)
                return -ENOMEM;
        for (user = report->engine->users; user; user = user->hh.next)
                total += report_recent(user, now_ns);
        for (user = report->engine->users; user; user = user->hh.next, ++i) {
                report_user_status(user, total, now_ns, &users[i]);
                users[i].waited = report_waits(user, now_ns, &spreads[i]);
                users[i].sms = report_sms(report, user);
                list[i] = &users[i];
                report->status.queued += user->n_waiting;
                report->status.running += user->n_running;
        }
        report->status.users = list;
        report->status.n_users = n;
        return 0;
}

/* ---- limits ---------------------------------------------------------------- */

#define REPORT_LIMITS       (_USER_RESOURCE_N + 1u) /* of one user, with gpu_seconds */
#define REPORT_LIMITS_USERS 4096u                   /* with more the reply could be too large */

typedef struct ReportLimits {
        Gpuq__V1__UserLimit *limits;
        Gpuq__V1__UserLimit **list;
        size_t n;
} ReportLimits;

static void report_limit(ReportLimits *report, const User *user, const char *key, uint64_t limit,
                         uint64_t used, uint64_t left) {
        Gpuq__V1__UserLimit *to = &report->limits[report->n];

        gpuq__v1__user_limit__init(to);
        to->uid = user->uid;
        to->key = (char *)key;
        to->limit = limit;
        to->used = used;
        to->left = left;
        report->list[report->n++] = to;
}

static void report_user_limits(ReportLimits *report, const User *user, uint64_t now_ns) {
        uint64_t seconds = user->person->limits.gpu_seconds;
        uint64_t used_s = (uint64_t)ceil(user_window_seconds(user->person, now_ns));

        for (UserResource i = 0; i < _USER_RESOURCE_N; ++i)
                if (user_resource_key(i))
                        report_limit(report, user, user_resource_key(i), user_limit(user, i),
                                     user_used(user, i), user_left(user, i));
        report_limit(report, user, "gpu_seconds", seconds ? seconds : UINT64_MAX, used_s,
                     !seconds           ? UINT64_MAX
                     : used_s < seconds ? seconds - used_s
                                        : 0);
}

/* ---- jobs of Slurm --------------------------------------------------------- */

#define REPORT_SLURM_JOBS_MAX 4096u /* with more the reply could be too large */

static void report_slurm_job(const SlurmJob *job, Gpuq__V1__SlurmJobStatus *to) {
        gpuq__v1__slurm_job_status__init(to);
        to->number = job->key.number;
        to->uid = job->key.uid;
        to->account = (char *)job->account;
        to->weight = job->user->limits.weight;
        to->clients = job->n_clients;
}

static int report_compare_slurm_jobs(const void *a, const void *b) {
        const Gpuq__V1__SlurmJobStatus *job = *(Gpuq__V1__SlurmJobStatus *const *)a;
        const Gpuq__V1__SlurmJobStatus *other = *(Gpuq__V1__SlurmJobStatus *const *)b;

        if (job->number != other->number)
                return job->number < other->number ? -1 : 1;
        return (job->uid > other->uid) - (job->uid < other->uid);
}

/* Those of @user, or of all users. */
static int report_slurm_jobs(Clients *clients, const User *user, bool of_all,
                             Gpuq__V1__Status *status) {
        size_t n = MIN(HASH_COUNT(clients->slurm_jobs), REPORT_SLURM_JOBS_MAX);
        Gpuq__V1__SlurmJobStatus *jobs = bump_take(clients->bump, n * sizeof(*jobs) + 1);
        Gpuq__V1__SlurmJobStatus **list = bump_take(clients->bump, n * sizeof(*list) + 1);
        const SlurmJob *job;

        if (!jobs || !list)
                return -ENOMEM;
        status->slurm_jobs = list;
        for (job = clients->slurm_jobs; job && status->n_slurm_jobs < n; job = job->hh.next) {
                if (!of_all && job->key.uid != user->uid)
                        continue;
                list[status->n_slurm_jobs] = &jobs[status->n_slurm_jobs];
                report_slurm_job(job, &jobs[status->n_slurm_jobs++]);
        }
        qsort(list, status->n_slurm_jobs, sizeof(*list), report_compare_slurm_jobs);
        return 0;
}

int status_pack_own(Clients *clients, const User *user, bool of_all, uint8_t **ret_data,
                    size_t *ret_n_data) {
        size_t n_users = HASH_COUNT(clients->engine->users);
        bool is_of_all = of_all && n_users <= REPORT_LIMITS_USERS;
        size_t n = is_of_all ? n_users : 1;
        uint64_t now_ns = engine_now(clients->engine);
        Gpuq__V1__Status status = GPUQ__V1__STATUS__INIT;
        ReportLimits report = {
                .limits = bump_take(clients->bump, n * REPORT_LIMITS * sizeof(*report.limits)),
                .list = bump_take(clients->bump, n * REPORT_LIMITS * sizeof(*report.list)),
        };
        const User *other;

        if (!report.limits || !report.list)
                return -ENOMEM;
        if (!is_of_all)
                report_user_limits(&report, user, now_ns);
        for (other = clients->engine->users; is_of_all && other; other = other->hh.next)
                report_user_limits(&report, other, now_ns);
        status.uid = user->uid;
        status.limits = report.list;
        status.n_limits = report.n;
        if (report_slurm_jobs(clients, user, of_all, &status) < 0)
                return -ENOMEM;
        *ret_n_data = gpuq__v1__status__get_packed_size(&status);
        *ret_data = bump_take(clients->bump, *ret_n_data + 1);
        if (!*ret_data)
                return -ENOMEM;
        (void)gpuq__v1__status__pack(&status, *ret_data);
        return 0;
}

/* ---- all of it ------------------------------------------------------------- */

static int report_fill(ReportStatus *report) {
        const Engine *engine = report->engine;
        int r;

        report->status.daemon = (char *)GPUQ_VERSION;
        report->status.driver = (char *)device_driver(engine);
        if (engine->driver_version)
                report->status.driver_version = engine->driver_version;
        report->status.state = (char *)engine_state(engine);
        report->status.history_problem =
                (char *)report->clients->accounting_ops->problem(report->clients->accounting);
        report->status.history_lost =
                report->clients->accounting_ops->n_lost(report->clients->accounting);
        report->status.uptime_us = (uv_hrtime() - engine->started_ns) / 1000;
        r = report_devices(report);
        if (r < 0)
                return r;
        r = report->engine->executor_ops->report(report->engine->workers, report->allocator,
                                                 &report->status);
        if (r < 0)
                return r;
        return report_users(report);
}

static char *report_isolation(const Config *config) {
        if (config_is_fenced(config))
                return "shared, fenced";
        return config->isolation.shared ? "shared" : "user";
}

int status_pack(Clients *clients, uint8_t **ret_data, size_t *ret_n_data) {
        ReportStatus report = {
                .engine = clients->engine,
                .clients = clients,
                .allocator = bump_allocator(clients->bump),
                .status = GPUQ__V1__STATUS__INIT,
        };
        uint8_t *data;
        int r;

        if (clients->lacks_priority)
                report.status.lacks = REPORT_LACKS_PRIORITY;
        report.status.isolation = report_isolation(clients->engine->config);
        r = report_fill(&report);
        if (r < 0)
                return r;
        *ret_n_data = gpuq__v1__status__get_packed_size(&report.status);
        data = malloc(*ret_n_data + 1);
        if (!data)
                return -ENOMEM;

        (void)gpuq__v1__status__pack(&report.status, data);
        *ret_data = data;
        return 0;
}
