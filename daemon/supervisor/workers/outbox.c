/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/pack.h"
#include "proto/worker.pb-c.h"
#include "jobs.h"
#include "util/list.h"
#include "util/macro.h"

void outbox_init(Outbox *outbox) {
        *outbox = (Outbox){};
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
        free(outbox->packed);
        outbox->packed = NULL;
        outbox->n_packed = 0;
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
        add.session = module->session;
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

/* The numbers are worker.proto's and gpuq.proto's. */
static uint8_t *outbox_pack_buffer(uint8_t *p, const JobBuffer *buffer) {
        uint8_t *begin = p = pack_open(p, 3);

        p = pack_number(p, 1, buffer->arena->id);
        p = pack_number(p, 2, buffer->offset);
        p = pack_number(p, 3, buffer->length);
        p = pack_number(p, 4, buffer->direction);
        return pack_close(begin, p);
}

static uint8_t *outbox_pack_kernel(uint8_t *p, const JobKernel *kernel) {
        uint8_t *begin = p = pack_open(p, 4);

        p = pack_number(p, 1, kernel->module->id);
        p = pack_bytes(p, 2, kernel->name, kernel->n_name);
        return pack_close(begin, p);
}

/* Whoever goes before it by its buffers and has not ended is in this worker. */
static uint8_t *outbox_pack_after(uint8_t *p, const Job *job) {
        uint8_t *begin = p = pack_begin(p, 6);

        for (size_t i = 0; i < job->n_order; ++i)
                if (job->order[i].before)
                        p = pack_varint(p, job->order[i].before->id);
        pack_end(begin, p);
        return p;
}

static uint8_t *outbox_pack_job(uint8_t *p, const Job *job) {
        uint8_t *begin = p = pack_begin(p, 1);

        p = pack_number(p, 1, job->id);
        p = pack_signed(p, 2, job->entry.priority);
        for (size_t i = 0; i < job->n_buffers; ++i)
                p = outbox_pack_buffer(p, &job->buffers[i]);
        for (size_t i = 0; i < job->n_kernels; ++i)
                p = outbox_pack_kernel(p, &job->kernels[i]);
        p = pack_bytes(p, 5, job->operations, job->n_operations);
        if (job->n_order)
                p = outbox_pack_after(p, job);
        p = pack_number(p, 7, job->timed);
        p = pack_number(p, 8, MIN(job->timeout_ms, (uint64_t)UINT32_MAX));
        if (job->word) {
                p = pack_number(p, 9, job->word->id);
                p = pack_number(p, 10, job->word_offset);
        }
        if (job->is_alone)
                p = pack_number(p, 11, true);
        pack_end(begin, p);
        return p;
}

/* No less than its message needs. */
static size_t outbox_job_bytes(const Job *job) {
        size_t n_bytes = 2 * PACK_PREFIX_BYTES + 7 * PACK_FIELD_BYTES + job->n_operations +
                         job->n_buffers * (PACK_PREFIX_BYTES + 4 * PACK_FIELD_BYTES) +
                         PACK_PREFIX_BYTES + job->n_order * PACK_FIELD_BYTES;

        for (size_t i = 0; i < job->n_kernels; ++i)
                n_bytes += 2 * PACK_PREFIX_BYTES + PACK_FIELD_BYTES + job->kernels[i].n_name;
        return n_bytes;
}

/* How many of the jobs at the front go as one message. */
static size_t outbox_batch(const Outbox *outbox, size_t *ret_n_bytes) {
        size_t n_bytes = PACK_PREFIX_BYTES, n_jobs = 0;
        const OutboxItem *item;

        TAILQ_FOREACH (item, &outbox->items, link) {
                size_t n_more;

                if (item->kind != OUTBOX_JOB || n_jobs >= OUTBOX_LIST_JOBS)
                        break;
                n_more = outbox_job_bytes(item->job);
                if (n_jobs && n_bytes + n_more > OUTBOX_LIST_BYTES)
                        break;
                n_bytes += n_more;
                n_jobs++;
        }
        *ret_n_bytes = n_bytes;
        return n_jobs;
}

static int outbox_reserve(Outbox *outbox, size_t n_bytes) {
        uint8_t *packed;

        if (n_bytes <= outbox->n_packed)
                return 0;

        packed = realloc(outbox->packed, n_bytes);
        if (!packed)
                return -ENOMEM;
        outbox->packed = packed;
        outbox->n_packed = n_bytes;
        return 0;
}

/* A large list's memory is not kept. */
static void outbox_trim(Outbox *outbox) {
        if (outbox->n_packed <= OUTBOX_KEEP)
                return;
        free(outbox->packed);
        outbox->packed = NULL;
        outbox->n_packed = 0;
}

static int outbox_send_jobs(Outbox *outbox, Channel *channel) {
        OutboxItem *item = TAILQ_FIRST(&outbox->items);
        size_t n_bytes, n_jobs = outbox_batch(outbox, &n_bytes);
        uint8_t *p, *begin;
        int r;

        r = outbox_reserve(outbox, n_bytes);
        if (r < 0)
                return r;

        begin = p = pack_begin(outbox->packed, 6);
        for (size_t i = 0; i < n_jobs; ++i, item = TAILQ_NEXT(item, link))
                p = outbox_pack_job(p, item->job);
        pack_end(begin, p);
        assert((size_t)(p - outbox->packed) <= n_bytes);

        r = channel_send_packed(channel, outbox->packed, (size_t)(p - outbox->packed), -1);
        for (size_t i = 0; r == 0 && i < n_jobs; ++i)
                outbox_drop(outbox, TAILQ_FIRST(&outbox->items));
        outbox_trim(outbox);
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
