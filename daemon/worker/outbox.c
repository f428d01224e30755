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
        uint8_t data[];
};

void outbox_init(Outbox *outbox, Channel *channel) {
        outbox->channel = channel;
        STAILQ_INIT(&outbox->entries);
}

bool outbox_is_empty(const Outbox *outbox) {
        return STAILQ_EMPTY(&outbox->entries);
}

/* Return: 0, -ENOMEM, or another negative errno. */
static int outbox_queue(Outbox *outbox, const uint8_t *data, size_t n_data, int fd) {
        OutboxEntry *entry = malloc(sizeof(*entry) + n_data);
        int r;

        if (!entry)
                return -ENOMEM;

        *entry = (OutboxEntry){.fd = -1, .n_data = n_data};
        memcpy(entry->data, data, n_data);
        if (fd >= 0) {
                entry->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                if (entry->fd < 0) {
                        r = -errno;
                        free(entry);
                        return r;
                }
        }
        STAILQ_INSERT_TAIL(&outbox->entries, entry, link);
        return 0;
}

int outbox_send(Outbox *outbox, const WorkerMessage *message, int fd) {
        const uint8_t *data;
        size_t n_data;
        int r;

        r = outbox_flush(outbox);
        if (r)
                return r;
        r = protocol_pack(outbox->channel, message, &data, &n_data);
        if (r < 0)
                return r;
        r = outbox_is_empty(outbox) ? channel_send(outbox->channel, data, n_data, fd)
                                    : CHANNEL_E_AGAIN;
        return r == CHANNEL_E_AGAIN ? outbox_queue(outbox, data, n_data, fd) : r;
}

int outbox_flush(Outbox *outbox) {
        OutboxEntry *entry;
        int r;

        while ((entry = STAILQ_FIRST(&outbox->entries))) {
                r = channel_send(outbox->channel, entry->data, entry->n_data, entry->fd);
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
