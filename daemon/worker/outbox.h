/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_OUTBOX_H
#define GPUQ_WORKER_OUTBOX_H

/*
 * Outbox
 *
 * Messages to the supervisor, in order. When the ring is full they are queued here.
 */

#include <stdbool.h>
#include <sys/queue.h>

#include "worker/protocol.h"

typedef struct OutboxEntry OutboxEntry;

typedef struct Outbox {
        Channel *channel;
        STAILQ_HEAD(, OutboxEntry) entries;
} Outbox;

/** outbox_init() - @channel: borrowed. */
void outbox_init(Outbox *outbox, Channel *channel);
/**
 * outbox_send() - send now, or when there is space
 * @fd: a descriptor to send with it, or -1; the caller's
 *
 * Return: 0, CHANNEL_E_CLOSED, CHANNEL_E_CORRUPT, -EMSGSIZE (nothing is queued), or a negative errno.
 */
int outbox_send(Outbox *outbox, const WorkerMessage *message, int fd);
/** outbox_flush() - send queued messages. Return: as outbox_send(). */
int outbox_flush(Outbox *outbox);
/** outbox_is_empty() */
bool outbox_is_empty(const Outbox *outbox);

#endif
