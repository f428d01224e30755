/* SPDX-License-Identifier: Apache-2.0 */
#include "kmsg.h"

#include <stdbool.h>
#include <string.h>

#include "util/macro.h"

struct Kmsg {
        int fd;
        uint64_t n_lost;
        bool is_skipping;  /* skipping the rest of a line that is too long */
        size_t begin, end; /* bytes of buffer that were read and not returned yet */
        char buffer[KMSG_LINE_MAX + 1];
};

int kmsg_new(int fd, Kmsg **ret_kmsg) {
        Kmsg *kmsg;

        kmsg = calloc(1, sizeof(*kmsg));
        if (!kmsg)
                return -ENOMEM;

        kmsg->fd = fd;
        *ret_kmsg = kmsg;
        return 0;
}

Kmsg *kmsg_free(Kmsg *kmsg) {
        if (!kmsg)
                return NULL;

        closep(&kmsg->fd);
        free(kmsg);
        return NULL;
}

/* Return: NULL: there is no complete line. */
static const char *kmsg_take_line(Kmsg *kmsg) {
        char *line = kmsg->buffer + kmsg->begin;
        char *newline = memchr(line, '\n', kmsg->end - kmsg->begin);

        if (!newline)
                return NULL;
        *newline = '\0';
        kmsg->begin = (size_t)(newline + 1 - kmsg->buffer);
        if (!kmsg->is_skipping)
                return line;
        kmsg->is_skipping = false;
        return "";
}

static void kmsg_make_room(Kmsg *kmsg) {
        memmove(kmsg->buffer, kmsg->buffer + kmsg->begin, kmsg->end - kmsg->begin);
        kmsg->end -= kmsg->begin;
        kmsg->begin = 0;
        if (kmsg->end < KMSG_LINE_MAX)
                return;
        kmsg->n_lost += !kmsg->is_skipping;
        kmsg->is_skipping = true;
        kmsg->end = 0;
}

/* Return: as kmsg_read(), with 1 also for bytes to split, or for a loss. */
static int kmsg_fill(Kmsg *kmsg) {
        ssize_t n;

        kmsg_make_room(kmsg);
        do
                n = read(kmsg->fd, kmsg->buffer + kmsg->end, KMSG_LINE_MAX - kmsg->end);
        while (n < 0 && errno == EINTR);
        if (n > 0) {
                kmsg->end += (size_t)n;
                return 1;
        }
        if (n == 0 || errno == EAGAIN)
                return 0;
        /* Overwritten or too long: the next read() continues behind it. */
        if (errno != EPIPE && errno != EINVAL)
                return -errno;
        kmsg->n_lost++;
        return 1;
}

int kmsg_read(Kmsg *kmsg, const char **ret_line) {
        const char *line = kmsg_take_line(kmsg);
        int r;

        if (!line) {
                r = kmsg_fill(kmsg);
                if (r <= 0)
                        return r;
                line = kmsg_take_line(kmsg);
        }
        *ret_line = line ? line : "";
        return 1;
}

uint64_t kmsg_n_lost(const Kmsg *kmsg) {
        return kmsg->n_lost;
}
