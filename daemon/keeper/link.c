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

#include "util/macro.h"

typedef struct LinkItem {
        STAILQ_ENTRY(LinkItem) next; /* link->items */
        KeeperMessage message;
        int fd;
} LinkItem;

struct Link {
        int fd;
        STAILQ_HEAD(, LinkItem) items;
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
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {};
        struct iovec iov = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
        struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
        struct cmsghdr *cmsg;
        ssize_t n;

        if (fd >= 0) {
                header.msg_control = control.bytes;
                header.msg_controllen = sizeof(control.bytes);
                cmsg = CMSG_FIRSTHDR(&header);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
        }

        do
                n = sendmsg(link->fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n >= 0)
                return 0;
        if (link_may_pass(errno))
                return LINK_E_AGAIN;
        return errno == EPIPE || errno == ECONNRESET ? LINK_E_CLOSED : -errno;
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
        STAILQ_INSERT_TAIL(&link->items, item, next);

        r = link_flush(link);
        return r < 0 ? r : 0; /* a closed one is told by link_receive() */
}

/* All descriptors of the packet, also those beyond what we want: they are ours to close. */
static unsigned link_take_fds(struct msghdr *header, int fds[static KEEPER_N_FDS]) {
        unsigned n_fds = 0;

        for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
                if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
                        continue;
                n_fds = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
                memcpy(fds, CMSG_DATA(cmsg), n_fds * sizeof(int));
        }
        return n_fds;
}

int link_receive(Link *link, KeeperMessage *ret_message, int ret_fds[static KEEPER_N_FDS],
                 unsigned *ret_n_fds) {
        union {
                char bytes[CMSG_SPACE(KEEPER_N_FDS * sizeof(int))];
                struct cmsghdr align;
        } control;
        KeeperMessage message;
        int fds[KEEPER_N_FDS] = {-1, -1, -1, -1};
        struct iovec iov = {.iov_base = &message, .iov_len = sizeof(message)};
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = sizeof(control.bytes),
        };
        unsigned n_fds;
        ssize_t n;

        /* ECONNRESET comes once, before what the other side said, if it died with something unread. */
        do
                n = recvmsg(link->fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        while (n < 0 && (errno == EINTR || errno == ECONNRESET));
        if (n < 0 && link_may_pass(errno))
                return LINK_E_AGAIN;
        if (n == 0)
                return LINK_E_CLOSED;
        if (n < 0)
                return -errno;

        n_fds = link_take_fds(&header, fds);
        if (n != sizeof(message) || header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
                for (unsigned i = 0; i < n_fds; i++)
                        close(fds[i]);
                return LINK_E_BROKEN;
        }

        message.text[sizeof(message.text) - 1] = '\0';
        *ret_message = message;
        memcpy(ret_fds, fds, sizeof(fds));
        *ret_n_fds = n_fds;
        return 0;
}
