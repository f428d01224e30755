/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `gpuq queue` and `gpuq status` show.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "detached_ops.h"
#include "jobs.h"
#include "util/list.h"
#include "registry.h"
#include "session.h"

#define REPORT_ENTRIES_MAX 16384u
#define REPORT_BYTES_MAX   (3u << 20)
#define REPORT_REASON_MAX  160u

/* ---- queue ----------------------------------------------------------------- */

typedef struct ReportQueue {
        Session *session;
        const Gpuq__V1__QueueGet *get;
        uint64_t now_ns;
        Gpuq__V1__QueueEntry *entries;
        Gpuq__V1__QueueEntry **list;
        char (*reasons)[REPORT_REASON_MAX];
        size_t n_max;
        size_t n;
        size_t n_bytes;
} ReportQueue;

static bool report_wants(const Session *session, const Gpuq__V1__QueueGet *get, const User *user) {
        if (get->one_user)
                return user->uid == get->uid;
        return get->all_users || user == session->submitter.user;
}

/* A detached job has an id of its own, and the job that runs for it has another. */
static uint64_t report_id(const Job *job) {
        return job->submitter && job->submitter->ops != &session_submitter_ops ? (uint32_t)job->id
                                                                               : job->id;
}

static void report_job(ReportQueue *report, const Job *job, bool is_open) {
        Gpuq__V1__QueueEntry *entry = &report->entries[report->n];
        char *reason = report->reasons[report->n];

        gpuq__v1__queue_entry__init(entry);
        entry->id = report_id(job);
        entry->uid = job->user->uid;
        entry->user = job->user->name;
        if (is_open) {
                entry->label = job->label;
                if (job->work.n_kernels)
                        entry->kernel = (char *)job->work.kernels[0].name;
        }
        entry->state = (Gpuq__V1__State)job->state;
        entry->waited_us = job_waited_us(job, report->now_ns);
        entry->priority = job->entry.priority;
        entry->device = job->device ? job->device->index + 1 : 0;
        entry->retries = job->retries;
        if (job->state == JOB_RUNNING) {
                entry->ran_us = (report->now_ns - job->clock.started_ns) / 1000;
        } else {
                reason_write(job, reason, REPORT_REASON_MAX);
                entry->reason = reason;
        }
        report->list[report->n++] = entry;
        report->n_bytes += gpuq__v1__queue_entry__get_packed_size(entry) + 8;
}

static void report_user(ReportQueue *report, User *user) {
        bool is_open = report->session->peer.is_admin || report->session->submitter.user == user;
        const Job *job;

        reason_count(user);
        TAILQ_FOREACH (job, &user->jobs, user_link) {
                if (report->n >= report->n_max || report->n_bytes > REPORT_BYTES_MAX)
                        return;
                report_job(report, job, is_open);
        }
}

static void report_detached(ReportQueue *report, const DetachedEntry *detached) {
        const Gpuq__V1__Job *job = detached->job;
        Gpuq__V1__QueueEntry *entry = &report->entries[report->n];
        uint64_t now_s = (uint64_t)time(NULL);

        gpuq__v1__queue_entry__init(entry);
        entry->id = detached->id;
        entry->uid = detached->user->uid;
        entry->user = detached->user->name;
        if (report->session->peer.is_admin || report->session->submitter.user == detached->user) {
                entry->label = job->label;
                if (job->n_kernels)
                        entry->kernel = job->kernels[0]->name;
        }
        entry->state = GPUQ__V1__STATE__WAITING;
        entry->reason = (char *)detached->reason;
        entry->priority = job->priority;
        if (now_s > detached->made_s)
                entry->waited_us = (now_s - detached->made_s) * 1000000;
        report->list[report->n++] = entry;
        report->n_bytes += gpuq__v1__queue_entry__get_packed_size(entry) + 8;
}

static void report_visit_detached(const DetachedEntry *entry, void *userdata) {
        ReportQueue *report = userdata;

        if (report->n < report->n_max && report->n_bytes <= REPORT_BYTES_MAX && entry->reason &&
            report_wants(report->session, report->get, entry->user))
                report_detached(report, entry);
}

static int report_alloc(ReportQueue *report) {
        const Clients *clients = report->session->clients;
        size_t n_jobs = HASH_COUNT(report->session->engine->jobs) +
                        clients->detached_ops->count(clients->detached);

        report->n_max = MIN(n_jobs, (size_t)REPORT_ENTRIES_MAX);
        report->entries = calloc(report->n_max + 1, sizeof(*report->entries));
        report->list = calloc(report->n_max + 1, sizeof(*report->list));
        report->reasons = calloc(report->n_max + 1, sizeof(*report->reasons));
        return report->entries && report->list && report->reasons ? 0 : -ENOMEM;
}

static void report_free(ReportQueue *report) {
        free(report->reasons);
        free(report->list);
        free(report->entries);
}

void session_report_queue(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get) {
        ReportQueue report = {
                .session = session, .get = get, .now_ns = engine_now(session->engine)};
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Queue queue = GPUQ__V1__QUEUE__INIT;
        User *user;

        if (report_alloc(&report) < 0) {
                report_free(&report);
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory for the list of jobs"));
                return;
        }

        for (user = session->engine->users; user; user = user->hh.next)
                if (report_wants(session, get, user))
                        report_user(&report, user);
        session->clients->detached_ops->visit(session->clients->detached, report_visit_detached,
                                              &report);
        queue.entries = report.list;
        queue.n_entries = report.n;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_QUEUE;
        reply.queue = &queue;
        session_reply(session, &reply, -1);
        report_free(&report);
}

/* ---- status ---------------------------------------------------------------- */

/* The messages of one status reply, in one bump that ends with the request. */
typedef struct ReportStatus {
        Engine *engine;
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

static void report_user_status(const User *user, double total, uint64_t now_ns,
                               Gpuq__V1__UserStatus *to) {
        gpuq__v1__user_status__init(to);
        to->uid = user->uid;
        to->user = user->name;
        to->weight = user->limits.weight;
        to->share = total > 0 ? report_recent(user, now_ns) / total : 0;
        to->gpu_seconds = (double)user->gpu_ns / 1e9;
        to->sessions = user->n_sessions;
        to->queued = user->n_waiting;
        to->running = user->n_running;
        to->arena_bytes = user->used[USER_ARENA_BYTES];
        to->device_bytes = user->used[USER_DEVICE_BYTES];
        to->modules = (uint32_t)user->used[USER_MODULES];
        to->usage_seconds = report_usage(user, now_ns) / 1e9;
        to->window_seconds = user_window_seconds(user, now_ns);
}

static int report_users(ReportStatus *report) {
        size_t n = HASH_COUNT(report->engine->users), i = 0;
        Gpuq__V1__UserStatus *users = report_take(report, n, sizeof(*users));
        Gpuq__V1__UserStatus **list = report_take(report, n, sizeof(*list));
        uint64_t now_ns = engine_now(report->engine);
        const User *user;
        double total = 0;

        if (!users || !list)
                return -ENOMEM;
        for (user = report->engine->users; user; user = user->hh.next)
                total += report_recent(user, now_ns);
        for (user = report->engine->users; user; user = user->hh.next, ++i) {
                report_user_status(user, total, now_ns, &users[i]);
                list[i] = &users[i];
                report->status.queued += user->n_waiting;
                report->status.running += user->n_running;
        }
        report->status.users = list;
        report->status.n_users = n;
        return 0;
}

static int report_fill(ReportStatus *report) {
        const Engine *engine = report->engine;
        int r;

        report->status.daemon = (char *)GPUQ_VERSION;
        report->status.driver = (char *)device_driver(engine);
        if (engine->driver_version)
                report->status.driver_version = engine->driver_version;
        report->status.state = (char *)engine_state(engine);
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

void session_report_status(Session *session, uint32_t serial) {
        ReportStatus report = {
                .engine = session->engine,
                .allocator = bump_allocator(session->clients->bump),
                .status = GPUQ__V1__STATUS__INIT,
        };
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;

        if (report_fill(&report) < 0) {
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_MEMORY, "gpuqd has no memory for the status"));
                return;
        }

        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_STATUS;
        reply.status = &report.status;
        session_reply(session, &reply, -1);
}
