/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/protocol.h"

#include <errno.h>
#include <string.h>

/* Of one item. Return: 0: no such kind. */
static size_t protocol_item_bytes(uint32_t kind) {
        switch (kind) {
                case FROM_WORKER_PROBED:
                        return sizeof(WorkerDevice);
                case FROM_WORKER_ENDS:
                        return sizeof(WorkerEnd);
                case FROM_WORKER_STOPPED:
                        return sizeof(WorkerInFlight);
                case FROM_WORKER_RETURNED:
                        return sizeof(WorkerTaken);
                default:
                        return kind && kind <= FROM_WORKER_STATS;
        }
}

static uint32_t protocol_text_bytes(const char *text) {
        return text && *text ? (uint32_t)strlen(text) + 1 : 0;
}

static uint8_t *protocol_put(uint8_t *p, const void *data, size_t n_data) {
        return n_data ? (uint8_t *)memcpy(p, data, n_data) + n_data : p;
}

int protocol_pack(Channel *channel, const WorkerMessage *message, const uint8_t **ret_data,
                  size_t *ret_n_data) {
        WorkerHead head = message->head;
        size_t n_items = head.n_items * protocol_item_bytes(head.kind), n_texts;
        uint8_t *data, *p;
        int r;

        head.n_text = protocol_text_bytes(message->text);
        head.n_more = protocol_text_bytes(message->more);
        n_texts = WORKER_ALIGN((size_t)head.n_text + head.n_more);
        r = channel_reserve(channel, sizeof(head) + n_texts + n_items, &data);
        if (r < 0)
                return r;

        p = protocol_put(data, &head, sizeof(head));
        p = protocol_put(p, message->text, head.n_text);
        p = protocol_put(p, message->more, head.n_more);
        while ((p - data) % 8)
                *p++ = 0;
        p = protocol_put(p, message->items, n_items);
        *ret_data = data;
        *ret_n_data = (size_t)(p - data);
        return 0;
}

int protocol_send(Channel *channel, const WorkerMessage *message, int fd) {
        const uint8_t *data;
        size_t n_data;
        int r;

        r = protocol_pack(channel, message, &data, &n_data);
        return r < 0 ? r : channel_send(channel, data, n_data, fd);
}

/* Return: NULL: it does not end there. */
static const char *protocol_text(const uint8_t *data, uint32_t n_text) {
        if (!n_text)
                return "";
        return data[n_text - 1] == '\0' ? (const char *)data : NULL;
}

bool protocol_read(const uint8_t *data, size_t n_data, WorkerMessage *ret_message) {
        WorkerMessage message;
        uint64_t n_texts;

        if (n_data < sizeof(message.head))
                return false;
        memcpy(&message.head, data, sizeof(message.head));
        data += sizeof(message.head);
        n_data -= sizeof(message.head);

        n_texts = WORKER_ALIGN((uint64_t)message.head.n_text + message.head.n_more);
        if (n_texts > n_data || !protocol_item_bytes(message.head.kind) ||
            n_data - n_texts !=
                    (uint64_t)message.head.n_items * protocol_item_bytes(message.head.kind))
                return false;
        message.text = protocol_text(data, message.head.n_text);
        message.more = protocol_text(data + message.head.n_text, message.head.n_more);
        message.items = data + n_texts;
        if (!message.text || !message.more)
                return false;

        *ret_message = message;
        return true;
}

/* Return: whether @n_names bytes are so many texts, each with its end. */
static bool protocol_are_names(const char *names, uint32_t n_names, uint32_t n) {
        const char *p = names, *end = names + n_names;

        for (; n && p; --n) {
                p = memchr(p, '\0', (size_t)(end - p));
                p = p ? p + 1 : NULL;
        }
        return p == end;
}

const WorkerJob *protocol_job(const uint8_t *data, size_t n_data, WorkerJobParts *ret_parts) {
        const WorkerJob *job = (const WorkerJob *)data;
        uint64_t n_bytes = sizeof(*job);
        WorkerJobParts parts;

        if (n_data < sizeof(*job) || job->n_bytes > n_data)
                return NULL;
        n_bytes += (uint64_t)job->n_buffers * sizeof(*parts.buffers) +
                   ((uint64_t)job->n_kernels + job->n_after) * sizeof(uint64_t) +
                   WORKER_ALIGN((uint64_t)job->n_names + job->n_operations);
        if (n_bytes != job->n_bytes)
                return NULL;

        parts.buffers = (const WorkerBuffer *)(job + 1);
        parts.modules = (const uint64_t *)(parts.buffers + job->n_buffers);
        parts.after = parts.modules + job->n_kernels;
        parts.names = (const char *)(parts.after + job->n_after);
        parts.operations = (const uint8_t *)parts.names + job->n_names;
        if (!protocol_are_names(parts.names, job->n_names, job->n_kernels))
                return NULL;

        *ret_parts = parts;
        return job;
}
