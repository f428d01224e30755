/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper_link.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "proto/pass.h"
#include "util/log.h"
#include "util/macro.h"

typedef struct KeeperItem {
        KeeperMessage message;
        int fds[KEEPER_LINK_FDS_MAX];
        size_t n_fds;
        STAILQ_ENTRY(KeeperItem) link;
} KeeperItem;

struct KeeperLink {
        uv_poll_t poll;
        int fd;
        KeeperLinkReceive receive;
        KeeperLinkEnd end;
        void *userdata;
        STAILQ_HEAD(, KeeperItem) items;
        size_t n_keeps; /* how many of them are KEEP */
};

static void keeper_link_on_event(uv_poll_t *poll, int status, int events);

static int keeper_link_poll(KeeperLink *link) {
        int events = UV_READABLE | (STAILQ_EMPTY(&link->items) ? 0 : UV_WRITABLE);

        return uv_poll_start(&link->poll, events, keeper_link_on_event);
}

int keeper_link_new(uv_loop_t *loop, int fd, KeeperLinkReceive receive, KeeperLinkEnd end,
                    void *userdata, KeeperLink **ret_link) {
        KeeperLink *link;
        int r;

        link = calloc(1, sizeof(*link));
        if (!link)
                return -ENOMEM;

        link->fd = fd;
        link->receive = receive;
        link->end = end;
        link->userdata = userdata;
        STAILQ_INIT(&link->items);
        link->poll.data = link;
        r = uv_poll_init(loop, &link->poll, fd);
        if (r < 0) {
                free(link);
                return r;
        }
        r = keeper_link_poll(link);
        if (r < 0) {
                link->fd = -1;
                keeper_link_close(link);
                return r;
        }

        *ret_link = link;
        return 0;
}

static void keeper_link_drop_item(KeeperLink *link) {
        KeeperItem *item = STAILQ_FIRST(&link->items);

        STAILQ_REMOVE_HEAD(&link->items, link);
        link->n_keeps -= item->message.kind == KEEPER_KEEP;
        for (size_t i = 0; i < item->n_fds; ++i)
                close(item->fds[i]);
        free(item);
}

static void keeper_link_on_close(uv_handle_t *handle) {
        KeeperLink *link = handle->data;

        while (!STAILQ_EMPTY(&link->items))
                keeper_link_drop_item(link);
        closep(&link->fd);
        free(link);
}

KeeperLink *keeper_link_close(KeeperLink *link) {
        if (link)
                uv_close((uv_handle_t *)&link->poll, keeper_link_on_close);
        return NULL;
}

/* ---- out ------------------------------------------------------------------- */

/* The message stays queued and the loop calls again: keeper/link.c does the same. */
static bool keeper_link_may_pass(int r) {
        return r == -EAGAIN || r == -ENOMEM || r == -ENOBUFS || r == -ETOOMANYREFS;
}

static int keeper_link_write(int socket, const KeeperMessage *message, const int *fds,
                             size_t n_fds) {
        ssize_t n = pass_send(socket, message, sizeof(*message), fds, n_fds);

        return n < 0 ? (int)n : 0;
}

static int keeper_link_wait(KeeperLink *link, const KeeperMessage *message, const int *fds,
                            size_t n_fds) {
        KeeperItem *item;

        item = calloc(1, sizeof(*item));
        if (!item)
                return -ENOMEM;

        item->message = *message;
        for (size_t i = 0; i < n_fds; ++i) {
                item->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
                if (item->fds[i] < 0) {
                        int r = -errno;

                        while (i--)
                                close(item->fds[i]);
                        free(item);
                        return r;
                }
        }
        item->n_fds = n_fds;
        STAILQ_INSERT_TAIL(&link->items, item, link);
        link->n_keeps += message->kind == KEEPER_KEEP;
        return keeper_link_poll(link);
}

int keeper_link_send(KeeperLink *link, const KeeperMessage *message, const int *fds, size_t n_fds) {
        int r;

        if (!link)
                return 0;
        if (STAILQ_EMPTY(&link->items)) {
                r = keeper_link_write(link->fd, message, fds, n_fds);
                if (!keeper_link_may_pass(r))
                        return r;
        }
        return keeper_link_wait(link, message, fds, n_fds);
}

static int keeper_link_flush(KeeperLink *link) {
        KeeperItem *item;
        int r;

        while ((item = STAILQ_FIRST(&link->items))) {
                r = keeper_link_write(link->fd, &item->message, item->fds, item->n_fds);
                if (keeper_link_may_pass(r))
                        return 0;
                if (r < 0)
                        return r;
                keeper_link_drop_item(link);
        }
        return 0;
}

static void keeper_link_send_key(KeeperLink *link, KeeperKind kind, const char *key, const int *fds,
                                 size_t n_fds) {
        KeeperMessage message = {.kind = kind};
        int r;

        snprintf(message.text, sizeof(message.text), "%s", key);
        r = keeper_link_send(link, &message, fds, n_fds);
        if (r < 0)
                log_warning("cannot tell the keeper about %s: %s", key, strerror(-r));
}

void keeper_link_keep(KeeperLink *link, const char *key, int fd) {
        keeper_link_send_key(link, KEEPER_KEEP, key, &fd, 1);
}

bool keeper_link_is_behind(const KeeperLink *link) {
        return link && link->n_keeps > 0;
}

void keeper_link_drop(KeeperLink *link, const char *key) {
        keeper_link_send_key(link, KEEPER_DROP, key, NULL, 0);
}

void keeper_link_kill(KeeperLink *link, uint32_t worker) {
        KeeperMessage message = {.kind = KEEPER_KILL, .id = worker};
        int r;

        r = keeper_link_send(link, &message, NULL, 0);
        if (r < 0)
                log_warning("cannot tell the keeper to kill worker %u: %s", worker, strerror(-r));
}

/* ---- in -------------------------------------------------------------------- */

/* Return: 0, -EAGAIN, or another negative errno: the connection has ended. */
static int keeper_link_read(KeeperLink *link) {
        KeeperMessage message;
        int fds[KEEPER_LINK_FDS_MAX];
        size_t n_fds;
        ssize_t n;

        n = pass_receive(link->fd, &message, sizeof(message), fds, KEEPER_LINK_FDS_MAX, &n_fds);
        if (n < 0)
                return keeper_link_may_pass((int)n) ? -EAGAIN : (int)n;

        if (n != sizeof(message)) {
                for (size_t i = 0; i < n_fds; ++i)
                        close(fds[i]);
                return -EPIPE;
        }
        message.text[sizeof(message.text) - 1] = '\0';
        link->receive(&message, fds, n_fds, link->userdata);
        return 0;
}

static void keeper_link_on_event(uv_poll_t *poll, int status, int events) {
        KeeperLink *link = poll->data;
        int r = 0;

        if (events & UV_WRITABLE)
                r = keeper_link_flush(link);
        while (r == 0 && !uv_is_closing((uv_handle_t *)poll))
                r = keeper_link_read(link);
        if (uv_is_closing((uv_handle_t *)poll))
                return;
        if (r != -EAGAIN) {
                uv_poll_stop(poll);
                link->end(link->userdata);
                return;
        }
        keeper_link_poll(link);
}
