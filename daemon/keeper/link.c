/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link
 *
 * See link.h.
 */

#include "keeper/link.h"

#include <fcntl.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "proto/pass.h"
#include "util/macro.h"

#define LINK_ITEMS_MAX 8192u /* without a descriptor; some for each worker that there may be */

typedef struct LinkItem {
        STAILQ_ENTRY(LinkItem) next; /* link->items */
        KeeperMessage message;
        int fd;
} LinkItem;

struct Link {
        int fd;
        STAILQ_HEAD(, LinkItem) items;
        unsigned n_plain; /* without a descriptor */
};

int link_new(Link **ret_link, int *ret_peer) {
        Link *link;
        int pair[2];

        link = calloc(1, sizeof(*link));
        if (!link)
                return -ENOMEM;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                free(link);
                return -errno;
        }

        STAILQ_INIT(&link->items);
        link->fd = pair[0];
        *ret_peer = pair[1];
        *ret_link = link;
        return 0;
}

static void link_pop(Link *link) {
        LinkItem *item = STAILQ_FIRST(&link->items);

        STAILQ_REMOVE_HEAD(&link->items, next);
        link->n_plain -= item->fd < 0;
        closep(&item->fd);
        free(item);
}

Link *link_free(Link *link) {
        if (!link)
                return NULL;

        while (!STAILQ_EMPTY(&link->items))
                link_pop(link);
        close(link->fd);
        free(link);
        return NULL;
}

int link_fd(const Link *link) {
        return link->fd;
}

bool link_is_waiting(const Link *link) {
        return !STAILQ_EMPTY(&link->items);
}

/* For want of memory or of room, on our side or the kernel's: nothing is lost, and poll() brings us
 * back. Should it last, the supervisor counts as silent in the end. */
static bool link_may_pass(int error) {
        return error == EAGAIN || error == EWOULDBLOCK || error == ENOMEM || error == ENOBUFS ||
               error == ETOOMANYREFS;
}

static int link_send(Link *link, const KeeperMessage *message, int fd) {
        ssize_t n;

        n = pass_send(link->fd, message, sizeof(*message), &fd, fd >= 0);
        if (n >= 0)
                return 0;
        if (link_may_pass((int)-n))
                return LINK_E_AGAIN;
        return n == -EPIPE || n == -ECONNRESET ? LINK_E_CLOSED : (int)n;
}

int link_flush(Link *link) {
        LinkItem *item;
        int r;

        while ((item = STAILQ_FIRST(&link->items))) {
                r = link_send(link, &item->message, item->fd);
                if (r)
                        return r;
                link_pop(link);
        }
        return 0;
}

int link_queue(Link *link, const KeeperMessage *message, int fd) {
        _cleanup_(closep) int copy = -1;
        LinkItem *item;
        int r;

        if (fd < 0 && link->n_plain >= LINK_ITEMS_MAX)
                return -ENOBUFS;
        if (fd >= 0) {
                copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                if (copy < 0)
                        return -errno;
        }
        item = malloc(sizeof(*item));
        if (!item)
                return -ENOMEM;

        item->message = *message;
        item->fd = TAKE_FD(copy);
        link->n_plain += item->fd < 0;
        STAILQ_INSERT_TAIL(&link->items, item, next);

        r = link_flush(link);
        return r < 0 ? r : 0; /* a closed one is told by link_receive() */
}

int link_receive(Link *link, KeeperMessage *ret_message, int ret_fds[static KEEPER_N_FDS],
                 unsigned *ret_n_fds) {
        KeeperMessage message;
        int fds[KEEPER_N_FDS] = {-1, -1, -1};
        size_t n_fds;
        ssize_t n;

        /* ECONNRESET comes once, before what the other side said, if it died with something unread. */
        do
                n = pass_receive(link->fd, &message, sizeof(message), fds, KEEPER_N_FDS, &n_fds);
        while (n == -ECONNRESET);
        if (n < 0 && link_may_pass((int)-n))
                return LINK_E_AGAIN;
        if (n == 0)
                return LINK_E_CLOSED;
        if (n < 0)
                return n == -EBADMSG ? LINK_E_BROKEN : (int)n;

        if (n != sizeof(message)) {
                for (size_t i = 0; i < n_fds; i++)
                        close(fds[i]);
                return LINK_E_BROKEN;
        }

        message.text[sizeof(message.text) - 1] = '\0';
        *ret_message = message;
        memcpy(ret_fds, fds, sizeof(fds));
        *ret_n_fds = (unsigned)n_fds;
        return 0;
}
