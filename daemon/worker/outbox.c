/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outbox
 */
#include "worker/outbox.h"

#include <fcntl.h>
#include <string.h>

#include "util/macro.h"

struct OutboxEntry {
        STAILQ_ENTRY(OutboxEntry) link; /* outbox->entries */
        int fd;
        size_t n_data;
        uint8_t data[]; /* packed */
};

void outbox_init(Outbox *outbox, Channel *channel) {
        outbox->channel = channel;
        STAILQ_INIT(&outbox->entries);
}

bool outbox_is_empty(const Outbox *outbox) {
        return STAILQ_EMPTY(&outbox->entries);
}

static OutboxEntry *outbox_entry(size_t n_data) {
        OutboxEntry *entry = malloc(sizeof(*entry) + n_data);

        if (entry)
                *entry = (OutboxEntry){.fd = -1, .n_data = n_data};
        return entry;
}

/* @entry: consumed. */
static int outbox_queue(Outbox *outbox, OutboxEntry *entry, int fd) {
        if (fd >= 0) {
                entry->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                if (entry->fd < 0) {
                        int r = -errno;

                        free(entry);
                        return r;
                }
        }
        STAILQ_INSERT_TAIL(&outbox->entries, entry, link);
        return 0;
}

/* Return: as outbox_send(), or CHANNEL_E_AGAIN: the message is to be queued. */
static int outbox_make_way(Outbox *outbox) {
        int r;

        r = outbox_flush(outbox);
        if (r)
                return r;
        return outbox_is_empty(outbox) ? 0 : CHANNEL_E_AGAIN;
}

int outbox_send(Outbox *outbox, const Gpuq__Worker__FromWorker *message, int fd) {
        OutboxEntry *entry;
        int r;

        r = outbox_make_way(outbox);
        if (r == 0)
                r = channel_send(outbox->channel, &message->base, fd);
        if (r != CHANNEL_E_AGAIN)
                return r;

        entry = outbox_entry(gpuq__worker__from_worker__get_packed_size(message));
        if (!entry)
                return -ENOMEM;
        gpuq__worker__from_worker__pack(message, entry->data);
        return outbox_queue(outbox, entry, fd);
}

int outbox_send_packed(Outbox *outbox, const uint8_t *packed, size_t n_packed) {
        OutboxEntry *entry;
        int r;

        r = outbox_make_way(outbox);
        if (r == 0)
                r = channel_send_packed(outbox->channel, packed, n_packed, -1);
        if (r != CHANNEL_E_AGAIN)
                return r;

        entry = outbox_entry(n_packed);
        if (!entry)
                return -ENOMEM;
        memcpy(entry->data, packed, n_packed);
        return outbox_queue(outbox, entry, -1);
}

int outbox_flush(Outbox *outbox) {
        OutboxEntry *entry;
        int r;

        while ((entry = STAILQ_FIRST(&outbox->entries))) {
                r = channel_send_packed(outbox->channel, entry->data, entry->n_data, entry->fd);
                if (r == CHANNEL_E_AGAIN)
                        return 0;
                if (r)
                        return r;

                STAILQ_REMOVE_HEAD(&outbox->entries, link);
                if (entry->fd >= 0)
                        close(entry->fd);
                free(entry);
        }
        return 0;
}
