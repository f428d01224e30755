/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/outbox.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/worker.pb-c.h"
#include "supervisor/arena.h"
#include "supervisor/job.h"
#include "supervisor/list.h"
#include "supervisor/module.h"
#include "util/macro.h"

void outbox_init(Outbox *outbox) {
        TAILQ_INIT(&outbox->items);
}

static void outbox_push(Outbox *outbox, OutboxItem *item) {
        assert(!item->is_queued);
        item->is_queued = true;
        TAILQ_INSERT_TAIL(&outbox->items, item, link);
}

static void outbox_free_item(OutboxItem *item) {
        arena_unref(item->arena);
        module_unref(item->module);
        free(item);
}

static void outbox_drop(Outbox *outbox, OutboxItem *item) {
        TAILQ_REMOVE(&outbox->items, item, link);
        item->is_queued = false;
        if (item->kind == OUTBOX_JOB)
                return;
        outbox_free_item(item);
}

void outbox_clear(Outbox *outbox) {
        OutboxItem *item;

        while ((item = TAILQ_FIRST(&outbox->items)))
                outbox_drop(outbox, item);
}

void outbox_push_job(Outbox *outbox, Job *job) {
        outbox_push(outbox, &job->item);
}

bool outbox_remove_job(Outbox *outbox, Job *job) {
        if (!job->item.is_queued)
                return false;
        TAILQ_REMOVE(&outbox->items, &job->item, link);
        job->item.is_queued = false;
        return true;
}

static int outbox_push_new(Outbox *outbox, OutboxItem contents) {
        OutboxItem *item;

        item = malloc(sizeof(*item));
        if (!item)
                return -ENOMEM;

        *item = contents;
        if (item->arena)
                arena_ref(item->arena);
        if (item->module)
                module_ref(item->module);
        outbox_push(outbox, item);
        return 0;
}

int outbox_push_arena(Outbox *outbox, OutboxKind kind, Arena *arena) {
        return outbox_push_new(outbox, (OutboxItem){.kind = kind, .arena = arena});
}

int outbox_push_module(Outbox *outbox, Module *module) {
        return outbox_push_new(outbox, (OutboxItem){.kind = OUTBOX_MODULE_ADD, .module = module});
}

int outbox_push_id(Outbox *outbox, OutboxKind kind, uint64_t id) {
        return outbox_push_new(outbox, (OutboxItem){.kind = kind, .id = id});
}

/* ---- packing --------------------------------------------------------------- */

static int outbox_send_arena_add(Channel *channel, const Arena *arena) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__ArenaAdd add = GPUQ__WORKER__ARENA_ADD__INIT;

        add.id = arena->id;
        add.place = (Gpuq__V1__Place)arena->place;
        add.size = arena->size;
        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_ARENA_ADD;
        message.arena_add = &add;
        return channel_send(channel, &message.base, arena->fd);
}

static int outbox_send_arena_make(Channel *channel, const Arena *arena) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__ArenaMake make = GPUQ__WORKER__ARENA_MAKE__INIT;

        make.id = arena->id;
        make.size = arena->size;
        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_ARENA_MAKE;
        message.arena_make = &make;
        return channel_send(channel, &message.base, -1);
}

static int outbox_send_arena_drop(Channel *channel, uint64_t id) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__ArenaDrop drop = GPUQ__WORKER__ARENA_DROP__INIT;

        drop.id = id;
        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_ARENA_DROP;
        message.arena_drop = &drop;
        return channel_send(channel, &message.base, -1);
}

static int outbox_send_module_add(Channel *channel, const Module *module) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__ModuleAdd add = GPUQ__WORKER__MODULE_ADD__INIT;

        add.id = module->id;
        add.session = module->session_id;
        add.format = (Gpuq__V1__Format)module->format;
        add.length = module->length;
        add.options = module->options;
        add.n_options = module->n_options;
        add.name = module->name;
        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_MODULE_ADD;
        message.module_add = &add;
        return channel_send(channel, &message.base, module->image ? module->image->fd : -1);
}

static int outbox_send_module_drop(Channel *channel, uint64_t id) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__ModuleDrop drop = GPUQ__WORKER__MODULE_DROP__INIT;

        drop.id = id;
        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_MODULE_DROP;
        message.module_drop = &drop;
        return channel_send(channel, &message.base, -1);
}

static int outbox_send_stop(Channel *channel) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__Stop stop = GPUQ__WORKER__STOP__INIT;

        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_STOP;
        message.stop = &stop;
        return channel_send(channel, &message.base, -1);
}

static int outbox_send_one(Channel *channel, const OutboxItem *item) {
        switch (item->kind) {
                case OUTBOX_ARENA_ADD:
                        return outbox_send_arena_add(channel, item->arena);
                case OUTBOX_ARENA_MAKE:
                        return outbox_send_arena_make(channel, item->arena);
                case OUTBOX_ARENA_DROP:
                        return outbox_send_arena_drop(channel, item->id);
                case OUTBOX_MODULE_ADD:
                        return outbox_send_module_add(channel, item->module);
                case OUTBOX_MODULE_DROP:
                        return outbox_send_module_drop(channel, item->id);
                case OUTBOX_STOP:
                        return outbox_send_stop(channel);
                case OUTBOX_JOB:
                        break;
        }
        return -EINVAL;
}

/* ---- jobs ------------------------------------------------------------------ */

/* The messages of one job list, which point into the jobs; one block of memory. */
typedef struct OutboxPack {
        Gpuq__Worker__WorkerJob *jobs;
        Gpuq__Worker__WorkerJob **job_list;
        Gpuq__V1__Buffer *buffers;
        Gpuq__V1__Buffer **buffer_list;
        Gpuq__V1__Kernel *kernels;
        Gpuq__V1__Kernel **kernel_list;
        uint64_t *after;
        void *memory;
} OutboxPack;

typedef struct OutboxBatch {
        size_t n_jobs;
        size_t n_buffers;
        size_t n_kernels;
        size_t n_after;
} OutboxBatch;

static size_t job_n_bytes(const Job *job) {
        return 64 + job->n_operations + job->n_buffers * 32 + job->n_kernels * 64 +
               job->n_order * 10;
}

/* How many of the jobs at the front go as one message. */
static OutboxBatch outbox_batch(const Outbox *outbox) {
        OutboxBatch batch = {};
        const OutboxItem *item;
        size_t n_bytes = 0;

        TAILQ_FOREACH(item, &outbox->items, link) {
                if (item->kind != OUTBOX_JOB || batch.n_jobs >= OUTBOX_LIST_JOBS)
                        break;
                n_bytes += job_n_bytes(item->job);
                if (batch.n_jobs && n_bytes > OUTBOX_LIST_BYTES)
                        break;
                batch.n_jobs++;
                batch.n_buffers += item->job->n_buffers;
                batch.n_kernels += item->job->n_kernels;
                batch.n_after += item->job->n_order;
        }
        return batch;
}

static int outbox_pack_alloc(const OutboxBatch *batch, OutboxPack *ret_pack) {
        OutboxPack pack = {};
        size_t n_bytes;
        char *cursor;

        n_bytes = batch->n_jobs * (sizeof(*pack.jobs) + sizeof(*pack.job_list)) +
                  batch->n_buffers * (sizeof(*pack.buffers) + sizeof(*pack.buffer_list)) +
                  batch->n_kernels * (sizeof(*pack.kernels) + sizeof(*pack.kernel_list)) +
                  batch->n_after * sizeof(*pack.after);
        cursor = pack.memory = malloc(n_bytes);
        if (!cursor)
                return -ENOMEM;

        pack.jobs = (void *)cursor;
        pack.job_list = (void *)(pack.jobs + batch->n_jobs);
        pack.buffers = (void *)(pack.job_list + batch->n_jobs);
        pack.buffer_list = (void *)(pack.buffers + batch->n_buffers);
        pack.kernels = (void *)(pack.buffer_list + batch->n_buffers);
        pack.kernel_list = (void *)(pack.kernels + batch->n_kernels);
        pack.after = (void *)(pack.kernel_list + batch->n_kernels);
        *ret_pack = pack;
        return 0;
}

static void outbox_pack_buffers(OutboxPack *pack, Gpuq__Worker__WorkerJob *to, const Job *job) {
        to->buffers = pack->buffer_list;
        to->n_buffers = job->n_buffers;
        for (size_t i = 0; i < job->n_buffers; ++i) {
                Gpuq__V1__Buffer *buffer = pack->buffers++;

                gpuq__v1__buffer__init(buffer);
                buffer->arena = job->buffers[i].arena->id;
                buffer->offset = job->buffers[i].offset;
                buffer->length = job->buffers[i].length;
                buffer->direction = (Gpuq__V1__Direction)job->buffers[i].direction;
                *pack->buffer_list++ = buffer;
        }
}

static void outbox_pack_kernels(OutboxPack *pack, Gpuq__Worker__WorkerJob *to, const Job *job) {
        to->kernels = pack->kernel_list;
        to->n_kernels = job->n_kernels;
        for (size_t i = 0; i < job->n_kernels; ++i) {
                Gpuq__V1__Kernel *kernel = pack->kernels++;

                gpuq__v1__kernel__init(kernel);
                kernel->module = job->kernels[i].module->id;
                kernel->name = (char *)job->kernels[i].name;
                *pack->kernel_list++ = kernel;
        }
}

/* Whoever goes before it by its buffers and has not ended is in this worker. */
static void outbox_pack_after(OutboxPack *pack, Gpuq__Worker__WorkerJob *to, const Job *job) {
        to->after = pack->after;
        for (size_t i = 0; i < job->n_order; ++i)
                if (job->order[i].before)
                        to->after[to->n_after++] = job->order[i].before->id;
        pack->after += to->n_after;
}

static void outbox_pack_job(OutboxPack *pack, Job *job) {
        Gpuq__Worker__WorkerJob *to = pack->jobs++;

        gpuq__worker__worker_job__init(to);
        to->id = job->id;
        to->priority = job->entry.priority;
        to->operations.data = job->operations;
        to->operations.len = job->n_operations;
        to->timed = job->timed;
        to->timeout_ms = (uint32_t)MIN(job->timeout_ms, (uint64_t)UINT32_MAX);
        outbox_pack_buffers(pack, to, job);
        outbox_pack_kernels(pack, to, job);
        outbox_pack_after(pack, to, job);
        *pack->job_list++ = to;
}

static int outbox_send_jobs(Outbox *outbox, Channel *channel) {
        Gpuq__Worker__ToWorker message = GPUQ__WORKER__TO_WORKER__INIT;
        Gpuq__Worker__JobList list = GPUQ__WORKER__JOB_LIST__INIT;
        OutboxBatch batch = outbox_batch(outbox);
        OutboxItem *item = TAILQ_FIRST(&outbox->items);
        OutboxPack pack;
        int r;

        r = outbox_pack_alloc(&batch, &pack);
        if (r < 0)
                return r;

        list.jobs = pack.job_list;
        list.n_jobs = batch.n_jobs;
        for (size_t i = 0; i < batch.n_jobs; ++i, item = TAILQ_NEXT(item, link))
                outbox_pack_job(&pack, item->job);
        message.body_case = GPUQ__WORKER__TO_WORKER__BODY_JOBS;
        message.jobs = &list;

        r = channel_send(channel, &message.base, -1);
        free(pack.memory);
        for (size_t i = 0; r == 0 && i < batch.n_jobs; ++i)
                outbox_drop(outbox, TAILQ_FIRST(&outbox->items));
        return r;
}

int outbox_flush(Outbox *outbox, Channel *channel) {
        OutboxItem *item;
        int r;

        while ((item = TAILQ_FIRST(&outbox->items))) {
                if (item->kind == OUTBOX_JOB) {
                        r = outbox_send_jobs(outbox, channel);
                        if (r)
                                return r;
                        continue;
                }

                r = outbox_send_one(channel, item);
                if (r)
                        return r;
                outbox_drop(outbox, item);
        }
        return 0;
}
