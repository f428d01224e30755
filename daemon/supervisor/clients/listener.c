/* SPDX-License-Identifier: Apache-2.0 */
#include "listener.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "admission.h"
#include "arrivals.h"
#include "session.h"
#include "registry.h"
#include "util/activity.h"
#include "util/log.h"

struct Listener {
        Clients *clients;
        int fd;
        int reserve;
        uv_poll_t poll;
        uv_timer_t pause;
        unsigned n_handles;
};

static void listener_on_connection(uv_poll_t *poll, int status, int events);

static int listener_open_reserve(void) {
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int listener_new(Clients *clients, int fd, Listener **ret_listener) {
        Listener *listener;
        int r;

        listener = calloc(1, sizeof(*listener));
        if (!listener)
                return -ENOMEM;

        listener->clients = clients;
        listener->poll.data = listener->pause.data = listener;
        r = uv_poll_init(clients->engine->loop, &listener->poll, fd);
        if (r < 0) {
                free(listener);
                return r;
        }
        r = uv_timer_init(clients->engine->loop, &listener->pause);
        if (r < 0)
                abort(); /* cannot fail: it only links */

        listener->n_handles = 2;
        listener->fd = fd;
        listener->reserve = listener_open_reserve();
        *ret_listener = listener;
        return 0;
}

static void listener_on_close(uv_handle_t *handle) {
        Listener *listener = handle->data;

        if (--listener->n_handles)
                return;
        closep(&listener->reserve);
        closep(&listener->fd);
        free(listener);
}

Listener *listener_close(Listener *listener) {
        if (!listener)
                return NULL;
        uv_close((uv_handle_t *)&listener->poll, listener_on_close);
        uv_close((uv_handle_t *)&listener->pause, listener_on_close);
        return NULL;
}

void listener_start(Listener *listener) {
        uv_poll_start(&listener->poll, UV_READABLE, listener_on_connection);
}

/* ---- the peer -------------------------------------------------------------- */

static Failure *peer_check_owner(const Clients *clients, uid_t uid) {
        if (uid == clients->private_uid)
                return NULL;
        return failure_new(FAILURE_DENIED,
                           "this gpuqd was started with --private and serves only uid %u",
                           (unsigned)clients->private_uid);
}

static Failure *peer_check(Listener *listener, int fd, Peer *ret_peer) {
        const Clients *clients = listener->clients;
        struct ucred credentials;
        socklen_t n_bytes = sizeof(credentials);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &n_bytes) < 0)
                return failure_new(FAILURE_INTERNAL, "cannot read your credentials: %s",
                                   strerror(errno));

        *ret_peer = (Peer){
                .uid = credentials.uid,
                .gid = credentials.gid,
                .pid = credentials.pid,
                .is_admin = credentials.uid == 0,
        };
        activity_begin(ACTIVITY_CONNECTION, 0, credentials.uid, 0);
        if (clients->is_private) {
                ret_peer->is_admin = true; /* only its owner gets further */
                return peer_check_owner(clients, credentials.uid);
        }
        if (ret_peer->is_admin)
                return NULL;
        return admission_check(&clients->engine->config->admission, fd, ret_peer);
}

/* ---- accept ---------------------------------------------------------------- */

static void listener_on_pause_over(uv_timer_t *timer) {
        Listener *listener = timer->data;

        if (listener->reserve < 0)
                listener->reserve = listener_open_reserve();
        listener_start(listener);
}

/* Refuses the first waiting connection; otherwise the loop would spin on it. */
static void listener_pause(Listener *listener) {
        int fd;

        log_warning("out of file descriptors: new connections wait for a moment");
        closep(&listener->reserve);
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        closep(&fd);
        listener->reserve = listener_open_reserve();
        uv_poll_stop(&listener->poll);
        uv_timer_start(&listener->pause, listener_on_pause_over, LISTENER_PAUSE_MS, 0);
}

/* Return: what it cost, as the number of groups. */
static unsigned listener_welcome(Listener *listener, int fd) {
        Peer peer = {.uid = (uid_t)-1};
        Failure *refusal;
        int r;

        refusal = peer_check(listener, fd, &peer);
        if (!refusal) {
                arrivals_add(listener->clients, fd, &peer);
                return peer.n_groups;
        }
        r = session_new(listener->clients, fd, &peer, refusal);
        if (r < 0) {
                log_warning("rejected a connection of uid %u: %s", (unsigned)peer.uid,
                            strerror(-r));
                close(fd);
        }
        return peer.n_groups;
}

static void listener_on_connection(uv_poll_t *poll, int status, int events) {
        Listener *listener = poll->data;
        unsigned n_groups = 0;
        int fd;

        activity_shift(ACTIVITY_CONNECTION);
        for (unsigned i = 0; i < LISTENER_BURST && n_groups < LISTENER_GROUPS; ++i) {
                fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        n_groups += listener_welcome(listener, fd);
                        continue;
                }
                if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                        listener_pause(listener);
                        return;
                }
                if (errno == EAGAIN || errno == EWOULDBLOCK)
                        return;
        }
}
