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

#include "keeper/passed.h"
#include "proto/pass.h"
#include "util/macro.h"

#define LINK_ITEMS_MAX 8192u /* without a descriptor; some for each worker that there may be */

#define LINK_FDS_MAX 253 /* SCM_MAX_FD of the kernel: no message has more */

typedef struct LinkItem {
        STAILQ_ENTRY(LinkItem) next; /* link->items */
        KeeperMessage message;
        int fd;
} LinkItem;

struct Link {
        int fd;
        STAILQ_HEAD(, LinkItem) items;
        unsigned n_plain; /* without a descriptor */
        bool is_refused;  /* the first of them, and not for want of room */
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
        return !STAILQ_EMPTY(&link->items) && !link->is_refused;
}

bool link_is_refused(const Link *link) {
        return !STAILQ_EMPTY(&link->items) && link->is_refused;
}

/* For want of memory or of room, on our side or the kernel's: nothing is lost, and poll() or its
 * timeout brings us back. Should it last, the supervisor counts as silent in the end. */
static bool link_may_pass(int error) {
        return error == EAGAIN || error == EWOULDBLOCK || error == ENOMEM || error == ENOBUFS ||
               error == ETOOMANYREFS;
}

static int link_send(Link *link, const KeeperMessage *message, int fd) {
        ssize_t n;

        n = pass_send(link->fd, message, sizeof(*message), &fd, fd >= 0);
        link->is_refused = n < 0 && n != -EAGAIN && link_may_pass((int)-n);
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

/*
 * With room for all descriptors that one message can have: those without room the kernel would close
 * in our name, and pass_receive() itself, which may take long. Return: as pass_receive(); the
 * descriptors are the caller's whatever it is.
 */
static ssize_t link_read(int socket, void *data, size_t n_max, int fds[static LINK_FDS_MAX],
                         size_t *ret_n_fds) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(LINK_FDS_MAX * sizeof(int))];
        struct iovec iov = {.iov_base = data, .iov_len = n_max};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        struct cmsghdr *cmsg;
        ssize_t n;

        *ret_n_fds = 0;
        do
                n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        cmsg = CMSG_FIRSTHDR(&message);
        if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS) {
                *ret_n_fds = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(cmsg), *ret_n_fds * sizeof(int));
        }
        return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : n;
}

int link_receive(Link *link, KeeperMessage *ret_message, int ret_fds[static KEEPER_N_FDS],
                 unsigned *ret_n_fds) {
        KeeperMessage message;
        int fds[LINK_FDS_MAX] = {-1, -1, -1};
        size_t n_fds;
        ssize_t n;

        /* ECONNRESET comes once, before what the other side said, if it died with something unread. */
        do
                n = link_read(link->fd, &message, sizeof(message), fds, &n_fds);
        while (n == -ECONNRESET);
        if (n < 0 && link_may_pass((int)-n))
                return LINK_E_AGAIN;
        if (n == 0)
                return LINK_E_CLOSED;
        if (n < 0)
                (void)passed_discard(fds, n_fds);
        if (n < 0)
                return n == -EBADMSG ? LINK_E_BROKEN : (int)n;

        if (n != sizeof(message) || n_fds > KEEPER_N_FDS) {
                (void)passed_discard(fds, n_fds);
                return LINK_E_BROKEN;
        }

        message.text[sizeof(message.text) - 1] = '\0';
        *ret_message = message;
        memcpy(ret_fds, fds, KEEPER_N_FDS * sizeof(int));
        *ret_n_fds = (unsigned)n_fds;
        return 0;
}
