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
        uv_timer_t retry;
        unsigned n_handles;
        int fd;
        KeeperLinkReceive receive;
        KeeperLinkEnd end;
        void *userdata;
        STAILQ_HEAD(, KeeperItem) items;
        bool is_refused;       /* not for want of room in the socket: `retry` tries again */
        uint64_t n_keeps;      /* descriptors to be kept, ever */
        uint64_t n_keeps_sent; /* of these */
};

static void keeper_link_on_event(uv_poll_t *poll, int status, int events);
static void keeper_link_on_retry(uv_timer_t *timer);

static int keeper_link_poll(KeeperLink *link) {
        bool is_waiting = !STAILQ_EMPTY(&link->items);
        int events = UV_READABLE | (is_waiting && !link->is_refused ? UV_WRITABLE : 0);

        if (is_waiting && link->is_refused && !uv_is_active((uv_handle_t *)&link->retry))
                uv_timer_start(&link->retry, keeper_link_on_retry, KEEPER_LINK_RETRY_MS, 0);
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
        link->poll.data = link->retry.data = link;
        r = uv_poll_init(loop, &link->poll, fd);
        if (r < 0) {
                free(link);
                return r;
        }
        r = uv_timer_init(loop, &link->retry);
        if (r < 0)
                abort(); /* cannot fail: it only links */
        link->n_handles = 2;
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
        link->n_keeps_sent += item->message.kind == KEEPER_KEEP;
        for (size_t i = 0; i < item->n_fds; ++i)
                close(item->fds[i]);
        free(item);
}

static void keeper_link_on_close(uv_handle_t *handle) {
        KeeperLink *link = handle->data;

        if (--link->n_handles)
                return;
        while (!STAILQ_EMPTY(&link->items))
                keeper_link_drop_item(link);
        closep(&link->fd);
        free(link);
}

KeeperLink *keeper_link_close(KeeperLink *link) {
        if (!link)
                return NULL;
        uv_close((uv_handle_t *)&link->poll, keeper_link_on_close);
        uv_close((uv_handle_t *)&link->retry, keeper_link_on_close);
        return NULL;
}

/* ---- out ------------------------------------------------------------------- */

/* The message stays queued: keeper/link.c does the same. */
static bool keeper_link_may_pass(int r) {
        return r == -EAGAIN || r == -ENOMEM || r == -ENOBUFS || r == -ETOOMANYREFS;
}

static int keeper_link_write(KeeperLink *link, const KeeperMessage *message, const int *fds,
                             size_t n_fds) {
        ssize_t n = pass_send(link->fd, message, sizeof(*message), fds, n_fds);
        bool was_refused = link->is_refused;

        link->is_refused = n < 0 && n != -EAGAIN;
        if (n == -ETOOMANYREFS && !was_refused)
                log_warning("cannot send descriptors to the keeper: the kernel counts too many of "
                            "this user that others have not read; trying again");
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
        (void)keeper_link_poll(link);
        return 0;
}

int keeper_link_send(KeeperLink *link, const KeeperMessage *message, const int *fds, size_t n_fds) {
        int r;

        if (!link)
                return 0;
        if (STAILQ_EMPTY(&link->items) || message->kind == KEEPER_STATUS) {
                r = keeper_link_write(link, message, fds, n_fds);
                if (!keeper_link_may_pass(r))
                        return r;
        }
        return keeper_link_wait(link, message, fds, n_fds);
}

static int keeper_link_flush(KeeperLink *link) {
        KeeperItem *item;
        int r;

        while ((item = STAILQ_FIRST(&link->items))) {
                r = keeper_link_write(link, &item->message, item->fds, item->n_fds);
                if (keeper_link_may_pass(r))
                        return 0;
                if (r < 0)
                        return r;
                keeper_link_drop_item(link);
        }
        return 0;
}

/* Return: whether the keeper has it, or will have it. */
static bool keeper_link_send_key(KeeperLink *link, KeeperKind kind, const char *key, const int *fds,
                                 size_t n_fds) {
        KeeperMessage message = {.kind = kind};
        int r;

        snprintf(message.text, sizeof(message.text), "%s", key);
        r = keeper_link_send(link, &message, fds, n_fds);
        if (r < 0)
                log_warning("cannot tell the keeper about %s: %s", key, strerror(-r));
        return r == 0;
}

uint64_t keeper_link_keep(KeeperLink *link, const char *key, int fd) {
        if (!link || !keeper_link_send_key(link, KEEPER_KEEP, key, &fd, 1))
                return 0;
        link->n_keeps++;
        link->n_keeps_sent += STAILQ_EMPTY(&link->items);
        return link->n_keeps;
}

uint64_t keeper_link_position(const KeeperLink *link) {
        return link ? link->n_keeps : 0;
}

bool keeper_link_has_sent(const KeeperLink *link, uint64_t position) {
        return !link || link->n_keeps_sent >= position;
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

static void keeper_link_fail(KeeperLink *link) {
        uv_poll_stop(&link->poll);
        uv_timer_stop(&link->retry);
        link->end(link->userdata);
}

static void keeper_link_on_retry(uv_timer_t *timer) {
        KeeperLink *link = timer->data;

        if (keeper_link_flush(link) < 0)
                keeper_link_fail(link);
        else
                keeper_link_poll(link);
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
                keeper_link_fail(link);
                return;
        }
        keeper_link_poll(link);
}
