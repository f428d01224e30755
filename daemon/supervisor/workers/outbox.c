/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs.h"
#include "util/list.h"
#include "util/macro.h"

void outbox_init(Outbox *outbox) {
        *outbox = (Outbox){};
        TAILQ_INIT(&outbox->items);
}

static OutboxItem *outbox_item(Delivery *delivery) {
        return container_of(delivery, OutboxItem, delivery);
}

static const Job *outbox_job(const Delivery *delivery) {
        return container_of(delivery, Job, delivery);
}

static void outbox_push(Outbox *outbox, Delivery *delivery) {
        assert(!delivery->is_queued);
        delivery->is_queued = true;
        TAILQ_INSERT_TAIL(&outbox->items, delivery, link);
}

static void outbox_remove(Outbox *outbox, Delivery *delivery) {
        TAILQ_REMOVE(&outbox->items, delivery, link);
        delivery->is_queued = false;
}

static void outbox_drop(Outbox *outbox, Delivery *delivery) {
        OutboxItem *item;

        outbox_remove(outbox, delivery);
        if (!delivery->kind)
                return;
        item = outbox_item(delivery);
        arena_unref(item->arena);
        module_unref(item->module);
        free(item);
}

void outbox_clear(Outbox *outbox) {
        Delivery *delivery;

        while ((delivery = TAILQ_FIRST(&outbox->items)))
                outbox_drop(outbox, delivery);
}

void outbox_push_job(Outbox *outbox, Job *job) {
        outbox_push(outbox, &job->delivery);
}

bool outbox_remove_job(Outbox *outbox, Job *job) {
        if (!job->delivery.is_queued)
                return false;
        outbox_remove(outbox, &job->delivery);
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
        outbox_push(outbox, &item->delivery);
        return 0;
}

int outbox_push_arena(Outbox *outbox, WorkerMessageKind kind, Arena *arena) {
        return outbox_push_new(outbox, (OutboxItem){.delivery.kind = kind, .arena = arena});
}

int outbox_push_module(Outbox *outbox, Module *module) {
        return outbox_push_new(
                outbox, (OutboxItem){.delivery.kind = TO_WORKER_MODULE_ADD, .module = module});
}

int outbox_push_id(Outbox *outbox, WorkerMessageKind kind, uint64_t id) {
        return outbox_push_new(outbox, (OutboxItem){.delivery.kind = kind, .id = id});
}

int outbox_push_lease(Outbox *outbox, WorkerMessageKind kind, const Lease *lease) {
        return outbox_push_new(outbox, (OutboxItem){.delivery.kind = kind, .lease = lease});
}

/* ---- messages -------------------------------------------------------------- */

static int outbox_send_arena(Channel *channel, WorkerMessageKind kind, const Arena *arena) {
        WorkerMessage message = {
                {
                        .kind = kind,
                        .id = arena->id,
                        .number = arena->size,
                        .detail = (uint32_t)arena->place,
                        .n_items = sizeof(arena->address),
                },
                .items = &arena->address,
        };

        return protocol_send(channel, &message, kind == TO_WORKER_ARENA_ADD ? arena->fd : -1);
}

static char *outbox_write_words(char *p, WorkerWord word, char *const *list, size_t n) {
        for (size_t i = 0; i < n; ++i) {
                *p = (char)word;
                p = stpcpy(p + 1, list[i]) + 1;
        }
        return p;
}

static size_t outbox_measure_words(char *const *list, size_t n) {
        size_t n_bytes = 0;

        for (size_t i = 0; i < n; ++i)
                n_bytes += strlen(list[i]) + 2;
        return n_bytes;
}

/* Return: NULL: no memory. */
static char *outbox_make_words(const ModuleTexts *texts, uint32_t *ret_n_bytes) {
        char *words, *p, number[24], *numbers[] = {number};

        snprintf(number, sizeof(number), "%llu", (unsigned long long)texts->n_header_bytes);
        words = p = malloc(outbox_measure_words(numbers, 1) +
                           outbox_measure_words(texts->options, texts->n_options) +
                           outbox_measure_words(texts->names, texts->n_names));
        if (!words)
                return NULL;

        p = outbox_write_words(p, WORKER_WORD_HEADERS, numbers, 1);
        p = outbox_write_words(p, WORKER_WORD_OPTION, texts->options, texts->n_options);
        p = outbox_write_words(p, WORKER_WORD_KERNEL, texts->names, texts->n_names);
        *ret_n_bytes = (uint32_t)(p - words);
        return words;
}

static int outbox_send_module(Channel *channel, const Module *module) {
        WorkerMessage message = {
                {
                        .kind = TO_WORKER_MODULE_ADD,
                        .id = module->id,
                        .number = module->length,
                        .detail = (uint32_t)module->format,
                },
                .text = module->name,
        };
        _cleanup_(freep) char *words = NULL;

        words = outbox_make_words(&module->texts, &message.head.n_items);
        if (!words)
                return -ENOMEM;
        message.items = words;
        return protocol_send(channel, &message, module->image ? module->image->fd : -1);
}

static int outbox_send_lease(Channel *channel, WorkerMessageKind kind, const Lease *lease);

static int outbox_send_one(Channel *channel, Delivery *delivery) {
        const OutboxItem *item = outbox_item(delivery);

        if (item->arena)
                return outbox_send_arena(channel, delivery->kind, item->arena);
        if (item->module)
                return outbox_send_module(channel, item->module);
        if (item->lease)
                return outbox_send_lease(channel, delivery->kind, item->lease);
        return protocol_send(channel, &(WorkerMessage){{.kind = delivery->kind, .id = item->id}},
                             -1);
}

/* ---- jobs ------------------------------------------------------------------ */

static uint8_t *outbox_write_buffers(uint8_t *p, const Job *job) {
        WorkerBuffer *buffers = (WorkerBuffer *)p;

        for (size_t i = 0; i < job->work.n_buffers; ++i)
                buffers[i] = (WorkerBuffer){
                        .arena = job->work.buffers[i].arena->id,
                        .offset = job->work.buffers[i].offset,
                        .length = job->work.buffers[i].length,
                        .direction = job->work.buffers[i].direction,
                };
        return (uint8_t *)(buffers + job->work.n_buffers);
}

static uint8_t *outbox_write_modules(uint8_t *p, const Job *job) {
        uint64_t *modules = (uint64_t *)p;

        for (size_t i = 0; i < job->work.n_kernels; ++i)
                modules[i] = job->work.kernels[i].module->id;
        return (uint8_t *)(modules + job->work.n_kernels);
}

/* Predecessors by buffers that have not ended are in this worker. */
static bool outbox_is_after(const JobEdge *edge) {
        return edge->before && edge->before->state == JOB_RUNNING;
}

static uint8_t *outbox_write_after(uint8_t *p, const Job *job) {
        uint64_t *after = (uint64_t *)p;

        for (size_t i = 0; i < job->edges.n_order; ++i)
                if (outbox_is_after(&job->edges.order[i]))
                        *after++ = job->edges.order[i].before->id;
        return (uint8_t *)after;
}

static uint8_t *outbox_write_texts(uint8_t *p, const Job *job, uint32_t *ret_n_names) {
        uint8_t *begin = p;

        for (size_t i = 0; i < job->work.n_kernels; ++i)
                p = (uint8_t *)memcpy(p, job->work.kernels[i].name,
                                      job->work.kernels[i].n_name + 1) +
                    job->work.kernels[i].n_name + 1;
        *ret_n_names = (uint32_t)(p - begin);
        if (job->work.n_operations)
                memcpy(p, job->work.operations, job->work.n_operations);
        p += job->work.n_operations;
        while ((p - begin) % 8)
                *p++ = 0;
        return p;
}

static WorkerJob outbox_head(const Job *job) {
        return (WorkerJob){
                .priority = job->entry.priority,
                .id = job->id,
                .word_arena = job->work.word ? job->work.word->id : 0,
                .word_offset = job->work.word ? job->work.word_offset : 0,
                .timeout_ms = (uint32_t)MIN(job->work.timeout_ms, (uint64_t)UINT32_MAX),
                .n_buffers = (uint32_t)job->work.n_buffers,
                .n_kernels = (uint32_t)job->work.n_kernels,
                .n_operations = (uint32_t)job->work.n_operations,
                .timed = job->work.timed,
                .by_address = job->work.by_address,
                .alone = job->is_alone,
        };
}

static uint8_t *outbox_write_job(uint8_t *p, const Job *job) {
        WorkerJob *to = (WorkerJob *)p;
        uint8_t *after;

        *to = outbox_head(job);
        p = outbox_write_buffers((uint8_t *)(to + 1), job);
        after = p = outbox_write_modules(p, job);
        p = outbox_write_after(p, job);
        to->n_after = (uint32_t)((size_t)(p - after) / sizeof(uint64_t));
        p = outbox_write_texts(p, job, &to->n_names);
        to->n_bytes = (uint32_t)(p - (uint8_t *)to);
        return p;
}

/* Its encoded size. */
static size_t outbox_job_bytes(const Job *job) {
        size_t n_texts = job->work.n_operations, n_after = 0;

        for (size_t i = 0; i < job->work.n_kernels; ++i)
                n_texts += job->work.kernels[i].n_name + 1;
        for (size_t i = 0; i < job->edges.n_order; ++i)
                n_after += outbox_is_after(&job->edges.order[i]);
        return sizeof(WorkerJob) + job->work.n_buffers * sizeof(WorkerBuffer) +
               (job->work.n_kernels + n_after) * sizeof(uint64_t) + WORKER_ALIGN(n_texts);
}

/* ---- leases ---------------------------------------------------------------- */

static size_t outbox_template_bytes(const LeaseTemplate *template) {
        return outbox_job_bytes(template->job) + template->n_after * sizeof(uint64_t);
}

/* As of a job whose number is that of the prepared job, and which follows others by theirs. */
static uint8_t *outbox_write_template(uint8_t *p, const LeaseTemplate *template) {
        const Job *job = template->job;
        WorkerJob *to = (WorkerJob *)p;

        *to = outbox_head(job);
        to->id = template->prepared;
        to->n_after = template->n_after;
        p = outbox_write_buffers((uint8_t *)(to + 1), job);
        p = outbox_write_modules(p, job);
        for (unsigned i = 0; i < template->n_after; ++i, p += sizeof(uint64_t))
                *(uint64_t *)p = template->after[i];
        p = outbox_write_texts(p, job, &to->n_names);
        to->n_bytes = (uint32_t)(p - (uint8_t *)to);
        return p;
}

static int outbox_send_templates(Channel *channel, const Lease *lease) {
        WorkerMessage message = {{
                .kind = TO_WORKER_LEND,
                .id = lease->submitter->id,
                .number = WORKER_TAKEN(lease->n_taken, lease->last_tag),
                .detail = (uint32_t)MIN(lease_n_jobs(lease), WORKER_DIRECT_JOBS),
        }};
        _cleanup_(freep) uint8_t *data = NULL;
        size_t n_bytes = 0;
        uint8_t *p;

        for (unsigned i = 0; i < lease->n_templates; ++i)
                n_bytes += outbox_template_bytes(&lease->templates[i]);
        data = p = malloc(n_bytes);
        if (!data)
                return -ENOMEM;

        for (unsigned i = 0; i < lease->n_templates; ++i)
                p = outbox_write_template(p, &lease->templates[i]);
        assert((size_t)(p - data) == n_bytes);
        message.head.n_items = (uint32_t)n_bytes;
        message.items = data;
        return protocol_send(channel, &message, -1);
}

static int outbox_send_lease(Channel *channel, WorkerMessageKind kind, const Lease *lease) {
        if (kind == TO_WORKER_LEND)
                return outbox_send_templates(channel, lease);
        return protocol_send(channel, &(WorkerMessage){{.kind = kind, .id = lease->submitter->id}},
                             kind == TO_WORKER_DIRECT_RING ? lease->ring_fd : lease->bell_fd);
}

/* The number of jobs at the front that go as one message. */
static size_t outbox_batch(const Outbox *outbox, size_t *ret_n_bytes, size_t *ret_n_largest) {
        size_t n_bytes = 0, n_jobs = 0, n_largest = 0;
        const Delivery *delivery;

        TAILQ_FOREACH (delivery, &outbox->items, link) {
                size_t n_more;

                if (delivery->kind || n_jobs >= OUTBOX_LIST_JOBS)
                        break;
                n_more = outbox_job_bytes(outbox_job(delivery));
                if (n_jobs && n_bytes + n_more > OUTBOX_LIST_BYTES)
                        break;
                n_bytes += n_more;
                n_largest = MAX(n_largest, n_more);
                n_jobs++;
        }
        *ret_n_bytes = n_bytes;
        *ret_n_largest = n_largest;
        return n_jobs;
}

/* Each job is copied to the ring at once, while it is in the cache, and not all of them at the end. */
static int outbox_send_jobs(Outbox *outbox, Channel *channel) {
        size_t n_bytes, n_largest, n_jobs = outbox_batch(outbox, &n_bytes, &n_largest);
        WorkerHead head = {.kind = TO_WORKER_JOBS, .n_items = (uint32_t)n_bytes};
        uint8_t *data;
        int r;

        r = channel_reserve(channel, n_largest, &data);
        if (r < 0)
                return r;
        r = channel_begin(channel, sizeof(head) + n_bytes);
        if (r)
                return r;

        channel_add(channel, &head, sizeof(head));
        for (size_t i = 0; i < n_jobs; ++i) {
                Delivery *delivery = TAILQ_FIRST(&outbox->items);
                size_t n_job = (size_t)(outbox_write_job(data, outbox_job(delivery)) - data);

                assert(n_job <= n_bytes);
                n_bytes -= n_job;
                channel_add(channel, data, n_job);
                outbox_drop(outbox, delivery);
        }
        assert(n_bytes == 0);
        channel_end(channel);
        return 0;
}

int outbox_flush(Outbox *outbox, Channel *channel) {
        Delivery *delivery;
        int r;

        while ((delivery = TAILQ_FIRST(&outbox->items))) {
                if (!delivery->kind) {
                        r = outbox_send_jobs(outbox, channel);
                } else {
                        r = outbox_send_one(channel, delivery);
                        if (r == 0)
                                outbox_drop(outbox, delivery);
                }
                if (r)
                        return r;
        }
        return 0;
}
