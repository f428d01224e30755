/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outbox
 */
#include "worker/outbox.h"

#include <fcntl.h>

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

static int outbox_queue(Outbox *outbox, const Gpuq__Worker__FromWorker *message, int fd) {
        size_t n_data = gpuq__worker__from_worker__get_packed_size(message);
        _cleanup_(freep) OutboxEntry *entry = NULL;

        entry = malloc(sizeof(*entry) + n_data);
        if (!entry)
                return -ENOMEM;

        entry->fd = -1;
        if (fd >= 0) {
                entry->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                if (entry->fd < 0)
                        return -errno;
        }
        entry->n_data = gpuq__worker__from_worker__pack(message, entry->data);
        STAILQ_INSERT_TAIL(&outbox->entries, entry, link);
        entry = NULL; /* the list's; the macro above names it more than once */
        return 0;
}

int outbox_send(Outbox *outbox, const Gpuq__Worker__FromWorker *message, int fd) {
        int r;

        r = outbox_flush(outbox);
        if (r)
                return r;
        if (!outbox_is_empty(outbox))
                return outbox_queue(outbox, message, fd);

        r = channel_send(outbox->channel, &message->base, fd);
        if (r == CHANNEL_E_AGAIN)
                return outbox_queue(outbox, message, fd);
        return r;
}

static int outbox_send_entry(Outbox *outbox, const OutboxEntry *entry) {
        Gpuq__Worker__FromWorker *message;
        int r;

        message = gpuq__worker__from_worker__unpack(NULL, entry->n_data, entry->data);
        if (!message)
                return -ENOMEM;

        r = channel_send(outbox->channel, &message->base, entry->fd);
        gpuq__worker__from_worker__free_unpacked(message, NULL);
        return r;
}

int outbox_flush(Outbox *outbox) {
        OutboxEntry *entry;
        int r;

        while ((entry = STAILQ_FIRST(&outbox->entries))) {
                r = outbox_send_entry(outbox, entry);
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
