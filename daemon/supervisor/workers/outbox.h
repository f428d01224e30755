/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_OUTBOX_H
#define GPUQ_SUPERVISOR_OUTBOX_H

/*
 * Outbox
 *
 * Messages queued for one worker, in order. Consecutive jobs go as one list. A job embeds its item,
 * so queuing a job does not allocate; other items are freed after sending.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "jobs.h"
#include "worker/protocol.h"

#define OUTBOX_LIST_BYTES (1u << 20) /* of jobs in one message */
#define OUTBOX_LIST_JOBS  1024u

/* Any message but a job. */
typedef struct OutboxItem {
        Delivery delivery;  /* its kind is a WorkerMessageKind */
        uint64_t id;        /* *_DROP */
        Arena *arena;       /* a reference */
        Module *module;     /* a reference */
        const Lease *lease; /* out, until it is sent or dropped */
} OutboxItem;

typedef struct Outbox {
        TAILQ_HEAD(OutboxList, Delivery) items;
} Outbox;

/** outbox_init() - empty. */
void outbox_init(Outbox *outbox);
/** outbox_clear() - drop all queued messages; jobs are only unlinked. */
void outbox_clear(Outbox *outbox);
/** outbox_push_job() - queue a job behind all messages. */
void outbox_push_job(Outbox *outbox, Job *job);
/** outbox_remove_job() - Return: false: the job is not queued, so it was sent. */
bool outbox_remove_job(Outbox *outbox, Job *job);
/** outbox_push_arena() - ADD or MAKE. Return: 0, or -ENOMEM. */
int outbox_push_arena(Outbox *outbox, WorkerMessageKind kind, Arena *arena);
/** outbox_push_module() - ADD. Return: 0, or -ENOMEM. */
int outbox_push_module(Outbox *outbox, Module *module);
/** outbox_push_lease() - DIRECT_RING, DIRECT_BELL or LEND. Return: 0, or -ENOMEM. */
int outbox_push_lease(Outbox *outbox, WorkerMessageKind kind, const Lease *lease);
/** outbox_push_id() - a DROP, or STOP with 0. Return: 0, or -ENOMEM. */
int outbox_push_id(Outbox *outbox, WorkerMessageKind kind, uint64_t id);
/**
 * outbox_flush() - write as much as the channel takes
 *
 * Return: 0 when all is written, CHANNEL_E_AGAIN, CHANNEL_E_CORRUPT, CHANNEL_E_CLOSED, or a
 * negative errno.
 */
int outbox_flush(Outbox *outbox, Channel *channel);

#endif
