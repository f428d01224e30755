/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status and queue: the daemon's answer as plain structs, all in one block of
 * memory. A first pass adds up what is needed, a second one writes.
 */

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "call.h"
#include "error.h"

/* ---- status ---------------------------------------------------------------------- */

static size_t status_n_texts(const Gpuq__V1__Status *status) {
        size_t n = strlen(status->daemon) + strlen(status->driver) +
                   strlen(status->driver_version) + strlen(status->state) + strlen(status->lacks) +
                   strlen(status->history_problem) + strlen(status->isolation) + 7;

        for (size_t i = 0; i < status->n_devices; i++) {
                const Gpuq__V1__DeviceStatus *device = status->devices[i];

                n += strlen(device->name) + strlen(device->uuid) + strlen(device->pci) +
                     strlen(device->state) + 4;
        }
        for (size_t i = 0; i < status->n_workers; i++)
                n += strlen(status->workers[i]->state) + 1;
        for (size_t i = 0; i < status->n_users; i++)
                n += strlen(status->users[i]->user) + strlen(status->users[i]->sms) + 2;
        for (size_t i = 0; i < status->n_limits; i++)
                n += strlen(status->limits[i]->key) + 1;
        for (size_t i = 0; i < status->n_slurm_jobs; i++)
                n += strlen(status->slurm_jobs[i]->account) + 1;
        return n;
}

static const char *status_drained(Gpuq__V1__DrainedBy by) {
        if (by == GPUQ__V1__DRAINED_BY__NOBODY)
                return NULL;
        return by == GPUQ__V1__DRAINED_BY__ADMIN ? "admin" : "itself";
}

static void status_fill_devices(gpuq_status *to, const Gpuq__V1__Status *from, Block *block) {
        for (size_t i = 0; i < from->n_devices; i++) {
                const Gpuq__V1__DeviceStatus *device = from->devices[i];

                to->devices[i] = (gpuq_device_status){
                        .index = device->index,
                        .name = block_text(block, device->name),
                        .uuid = block_text(block, device->uuid),
                        .pci = block_text(block, device->pci),
                        .state = block_text(block, device->state),
                        .memory_total = device->memory_total,
                        .memory_arenas = device->memory_arenas,
                        .memory_used = device->memory_used,
                        .queued = device->queued,
                        .running = device->running,
                        .quanta = device->quanta,
                        .overruns = device->overruns,
                        .drained = status_drained(device->drained),
                        .xids = (int64_t)device->xids - 1,
                };
        }
}

static gpuq_worker_counters status_counters(const Gpuq__V1__WorkerCounters *from) {
        if (!from)
                return (gpuq_worker_counters){0};

        return (gpuq_worker_counters){
                .batches = from->batches,
                .coalesced = from->coalesced,
                .in_place = from->in_place,
                .staged_by_kernel = from->staged_by_kernel,
                .staged_by_copy = from->staged_by_copy,
                .graph_hits = from->graph_hits,
                .graph_misses = from->graph_misses,
                .graph_evictions = from->graph_evictions,
                .direct = from->direct,
        };
}

static void status_fill_workers(gpuq_status *to, const Gpuq__V1__Status *from, Block *block) {
        for (size_t i = 0; i < from->n_workers; i++) {
                const Gpuq__V1__WorkerStatus *worker = from->workers[i];

                to->workers[i] = (gpuq_worker_status){
                        .pid = (int)worker->pid,
                        .device = worker->device,
                        .uid = worker->uid,
                        .state = block_text(block, worker->state),
                        .memory = worker->memory,
                        .running = worker->running,
                        .contexts = worker->contexts,
                        .jobs = worker->jobs,
                        .counters = status_counters(worker->counters),
                        .express = worker->express,
                };
        }
}

static gpuq_spread status_spread(const Gpuq__V1__Spread *from) {
        if (!from)
                return (gpuq_spread){0};
        return (gpuq_spread){from->median, from->p95, from->p99};
}

static void status_fill_users(gpuq_status *to, const Gpuq__V1__Status *from, Block *block) {
        for (size_t i = 0; i < from->n_users; i++) {
                const Gpuq__V1__UserStatus *user = from->users[i];

                to->users[i] = (gpuq_user_status){
                        .uid = user->uid,
                        .user = block_text(block, user->user),
                        .weight = user->weight,
                        .share = user->share,
                        .gpu_seconds = user->gpu_seconds,
                        .sessions = user->sessions,
                        .queued = user->queued,
                        .running = user->running,
                        .modules = user->modules,
                        .arena_bytes = user->arena_bytes,
                        .device_bytes = user->device_bytes,
                        .usage_seconds = user->usage_seconds,
                        .window_seconds = user->window_seconds,
                        .done = user->done,
                        .failed = user->failed,
                        .cancelled = user->cancelled,
                        .has_waited = user->waited != NULL,
                        .waited = status_spread(user->waited),
                        .sms = block_text(block, user->sms),
                };
        }
}

static void status_fill_limits(gpuq_status *to, const Gpuq__V1__Status *from, Block *block) {
        for (size_t i = 0; i < from->n_limits; i++) {
                const Gpuq__V1__UserLimit *limit = from->limits[i];

                to->limits[i] = (gpuq_user_limit){
                        .uid = limit->uid,
                        .key = block_text(block, limit->key),
                        .limit = limit->limit,
                        .used = limit->used,
                        .left = limit->left,
                };
        }
}

static void status_fill_slurm_jobs(gpuq_status *to, const Gpuq__V1__Status *from, Block *block) {
        for (size_t i = 0; i < from->n_slurm_jobs; i++) {
                const Gpuq__V1__SlurmJobStatus *job = from->slurm_jobs[i];

                to->slurm_jobs[i] = (gpuq_slurm_job_status){
                        .number = job->number,
                        .uid = job->uid,
                        .account = block_text(block, job->account),
                        .weight = job->weight,
                        .clients = job->clients,
                };
        }
}

static int status_new(const Gpuq__V1__Status *from, gpuq_status **ret_status) {
        gpuq_status *status;
        Block block;
        int r;

        r = block_new(sizeof(*status) + from->n_devices * sizeof(*status->devices) +
                              from->n_workers * sizeof(*status->workers) +
                              from->n_users * sizeof(*status->users) +
                              from->n_limits * sizeof(*status->limits) +
                              from->n_slurm_jobs * sizeof(*status->slurm_jobs),
                      status_n_texts(from), &block);
        if (r < 0)
                return r;

        status = (gpuq_status *)block.memory;
        status->devices = (gpuq_device_status *)(status + 1);
        status->workers = (gpuq_worker_status *)(status->devices + from->n_devices);
        status->users = (gpuq_user_status *)(status->workers + from->n_workers);
        status->limits = (gpuq_user_limit *)(status->users + from->n_users);
        status->slurm_jobs = (gpuq_slurm_job_status *)(status->limits + from->n_limits);
        status->n_devices = from->n_devices;
        status->n_workers = from->n_workers;
        status->n_users = from->n_users;
        status->n_limits = from->n_limits;
        status->n_slurm_jobs = from->n_slurm_jobs;
        status->daemon = block_text(&block, from->daemon);
        status->driver = block_text(&block, from->driver);
        status->driver_version = block_text(&block, from->driver_version);
        status->state = block_text(&block, from->state);
        status->queued = from->queued;
        status->running = from->running;
        status->uptime_us = from->uptime_us;
        status->lacks = *from->lacks ? block_text(&block, from->lacks) : NULL;
        status->history_problem = block_text(&block, from->history_problem);
        status->history_lost = from->history_lost;
        status->isolation = block_text(&block, from->isolation);
        status->uid = from->uid;
        status_fill_devices(status, from, &block);
        status_fill_workers(status, from, &block);
        status_fill_users(status, from, &block);
        status_fill_limits(status, from, &block);
        status_fill_slurm_jobs(status, from, &block);
        *ret_status = status;
        return 0;
}

static int status_get(gpuq_client *client, gpuq_status **ret_status) {
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        int r;

        r = call_run(client, GPUQ__V1__REQUEST__BODY_STATUS_GET, &get, GPUQ__V1__REPLY__BODY_STATUS,
                     CLIENT_FOREVER, &reply, NULL);
        if (r < 0)
                return r;

        return status_new(reply->status, ret_status);
}

int gpuq_get_status(gpuq_client *client, gpuq_status **ret_status) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, status_get(client, ret_status));
}

void gpuq_status_free(gpuq_status *status) {
        free(status);
}

/* ---- queue ----------------------------------------------------------------------- */

#define QUEUE_TRIES 8u

/* The daemon sends at most 1,024 jobs and modules at a time. */
typedef struct QueuePages {
        Gpuq__V1__Reply **replies;
        size_t n;
        size_t n_entries;
        size_t n_modules;
        size_t n_texts;
} QueuePages;

static void queue_pages_release(QueuePages *pages) {
        for (size_t i = 0; i < pages->n; i++)
                gpuq__v1__reply__free_unpacked(pages->replies[i], NULL);
        free(pages->replies);
}

static size_t queue_n_texts(const Gpuq__V1__Queue *queue) {
        size_t n = 0;

        for (size_t i = 0; i < queue->n_entries; i++) {
                const Gpuq__V1__QueueEntry *entry = queue->entries[i];

                n += strlen(entry->user) + strlen(entry->label) + strlen(entry->kernel) +
                     strlen(entry->reason) + 4;
        }
        for (size_t i = 0; i < queue->n_modules; i++) {
                const Gpuq__V1__QueueModule *module = queue->modules[i];

                n += strlen(module->user) + strlen(module->name) + strlen(module->reason) + 3;
        }
        return n;
}

/* Takes the reply over. */
static int queue_pages_add(QueuePages *pages, Gpuq__V1__Reply *reply) {
        Gpuq__V1__Reply **replies;

        replies = reallocarray(pages->replies, pages->n + 1, sizeof(*replies));
        if (!replies) {
                gpuq__v1__reply__free_unpacked(reply, NULL);
                return error_memory();
        }
        pages->replies = replies;
        pages->replies[pages->n++] = reply;
        pages->n_entries += reply->queue->n_entries;
        pages->n_modules += reply->queue->n_modules;
        pages->n_texts += queue_n_texts(reply->queue);
        return 0;
}

static gpuq_queue_entry queue_entry(const Gpuq__V1__QueueEntry *entry, Block *block) {
        return (gpuq_queue_entry){
                .id = entry->id,
                .uid = entry->uid,
                .user = block_text(block, entry->user),
                .label = block_text(block, entry->label),
                .kernel = block_text(block, entry->kernel),
                .reason = block_text(block, entry->reason),
                .state = entry->state == GPUQ__V1__STATE__RUNNING ? "running" : "waiting",
                .waited_us = entry->waited_us,
                .ran_us = entry->ran_us,
                .priority = entry->priority,
                .device = (int)(entry->device - 1),
                .retries = entry->retries,
                .slurm_job = entry->slurm_job,
        };
}

static gpuq_queue_module queue_module(const Gpuq__V1__QueueModule *module, Block *block) {
        return (gpuq_queue_module){
                .uid = module->uid,
                .user = block_text(block, module->user),
                .name = block_text(block, module->name),
                .reason = block_text(block, module->reason),
                .waited_us = module->waited_us,
                .device = (int)(module->device - 1),
        };
}

static int queue_new(const QueuePages *pages, gpuq_queue **ret_queue) {
        gpuq_queue *queue;
        Block block;
        int r;

        r = block_new(sizeof(*queue) + pages->n_entries * sizeof(*queue->entries) +
                              pages->n_modules * sizeof(*queue->modules),
                      pages->n_texts, &block);
        if (r < 0)
                return r;

        queue = (gpuq_queue *)block.memory;
        queue->entries = (gpuq_queue_entry *)(queue + 1);
        queue->modules = (gpuq_queue_module *)(queue->entries + pages->n_entries);
        for (size_t i = 0; i < pages->n; i++) {
                const Gpuq__V1__Queue *page = pages->replies[i]->queue;

                for (size_t k = 0; k < page->n_entries; k++)
                        queue->entries[queue->n_entries++] = queue_entry(page->entries[k], &block);
                for (size_t k = 0; k < page->n_modules; k++)
                        queue->modules[queue->n_modules++] = queue_module(page->modules[k], &block);
        }

        *ret_queue = queue;
        return 0;
}

static int queue_get_pages(gpuq_client *client, int64_t uid, QueuePages *pages) {
        Gpuq__V1__QueueGet get = GPUQ__V1__QUEUE_GET__INIT;
        Gpuq__V1__Reply *reply;
        int r;

        get.all_users = uid < 0;
        get.one_user = uid >= 0;
        get.uid = uid < 0 ? 0 : (uint32_t)uid;
        do {
                r = call_run(client, GPUQ__V1__REQUEST__BODY_QUEUE_GET, &get,
                             GPUQ__V1__REPLY__BODY_QUEUE, CLIENT_FOREVER, &reply, NULL);
                if (r < 0)
                        return r;
                get.next = reply->queue->next;
                r = queue_pages_add(pages, reply);
                if (r < 0)
                        return r;
        } while (get.next);
        return 0;
}

static int queue_try_get(gpuq_client *client, int64_t uid, gpuq_queue **ret_queue,
                         bool *ret_was_cut) {
        QueuePages pages = {0};
        int r;

        r = queue_get_pages(client, uid, &pages);
        *ret_was_cut = r == GPUQ_E_NOT_FOUND && pages.n > 0;
        if (r >= 0)
                r = queue_new(&pages, ret_queue);
        queue_pages_release(&pages);
        return r;
}

/* A list is cut off when the daemon was restarted, or when many threads ask at the same time. */
static int queue_get(gpuq_client *client, int64_t uid, gpuq_queue **ret_queue) {
        bool was_cut = true;
        int r = 0;

        for (unsigned i = 0; was_cut && i < QUEUE_TRIES; i++)
                r = queue_try_get(client, uid, ret_queue, &was_cut);
        return r;
}

int gpuq_get_queue(gpuq_client *client, int64_t uid, gpuq_queue **ret_queue) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        if (uid > UINT32_MAX)
                return client_leave(client, error_set(GPUQ_E_INVALID, "the uid is out of range"));

        return client_leave(client, queue_get(client, uid, ret_queue));
}

void gpuq_queue_free(gpuq_queue *queue) {
        free(queue);
}
