/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transit
 *
 * Whenever a client has read a message, or has closed its end, the kernel wakes up those who wait
 * for room in the socket. An epoll of our own reports that as an edge (EPOLLET): libuv's polls know
 * levels only, and there is always some room. A connection is in it while descriptors are in
 * transit, so that others cost nothing.
 */
#include "transit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/list.h"
#include "util/macro.h"

#define TRANSITS_EVENTS 64 /* handled in one turn of the loop */

struct Transit {
        Transits *transits;
        User *user;
        Wire *wire; /* NULL: the session has ended, and the socket lingers */
        TransitRead read;
        void *userdata;
        UserCharge charge; /* one for each descriptor */
        bool is_watched;

        /* of a socket that lingers */
        int fd;
        Unread unread;
        UserCharge session;       /* it counts as a connection */
        LIST_ENTRY(Transit) link; /* transits->lingering */
};

struct Transits {
        uv_poll_t poll;
        int epoll;
        unsigned n_lingering;
        LIST_HEAD(, Transit) lingering;
};

static void transits_on_event(uv_poll_t *poll, int status, int events);

/* ---- all ------------------------------------------------------------------- */

int transits_new(uv_loop_t *loop, Transits **ret_transits) {
        Transits *transits;
        int r;

        transits = calloc(1, sizeof(*transits));
        if (!transits)
                return -ENOMEM;

        LIST_INIT(&transits->lingering);
        transits->poll.data = transits;
        transits->epoll = epoll_create1(EPOLL_CLOEXEC);
        r = transits->epoll < 0 ? -errno : uv_poll_init(loop, &transits->poll, transits->epoll);
        if (r < 0) {
                closep(&transits->epoll);
                free(transits);
                return r;
        }
        r = uv_poll_start(&transits->poll, UV_READABLE, transits_on_event);
        if (r < 0) {
                transits_close(transits);
                return r;
        }
        *ret_transits = transits;
        return 0;
}

static void transits_on_close(uv_handle_t *handle) {
        Transits *transits = handle->data;

        closep(&transits->epoll);
        free(transits);
}

static void transit_free(Transit *transit) {
        user_uncharge(&transit->charge);
        user_uncharge(&transit->session);
        closep(&transit->fd);
        free(transit);
}

static void transit_let_go(Transit *transit) {
        LIST_REMOVE(transit, link);
        transit->transits->n_lingering--;
        transit_free(transit);
}

Transits *transits_close(Transits *transits) {
        if (!transits)
                return NULL;
        while (!LIST_EMPTY(&transits->lingering))
                transit_let_go(LIST_FIRST(&transits->lingering));
        uv_close((uv_handle_t *)&transits->poll, transits_on_close);
        return NULL;
}

unsigned transits_count(const Transits *transits) {
        return transits->n_lingering;
}

/* ---- one ------------------------------------------------------------------- */

int transit_new(Transits *transits, User *user, Wire *wire, TransitRead read, void *userdata,
                Transit **ret_transit) {
        Transit *transit;

        transit = calloc(1, sizeof(*transit));
        if (!transit)
                return -ENOMEM;

        *transit = (Transit){
                .transits = transits,
                .user = user,
                .wire = wire,
                .read = read,
                .userdata = userdata,
                .fd = -1,
        };
        *ret_transit = transit;
        return 0;
}

static int transit_fd(const Transit *transit) {
        return transit->wire ? wire_fd(transit->wire) : transit->fd;
}

static int transit_watch(Transit *transit) {
        struct epoll_event event = {.events = EPOLLOUT | EPOLLET, .data.ptr = transit};

        if (transit->is_watched)
                return 0;
        if (epoll_ctl(transit->transits->epoll, EPOLL_CTL_ADD, transit_fd(transit), &event) < 0)
                return -errno;
        transit->is_watched = true;
        return 0;
}

static void transit_unwatch(Transit *transit) {
        if (transit->is_watched)
                (void)epoll_ctl(transit->transits->epoll, EPOLL_CTL_DEL, transit_fd(transit), NULL);
        transit->is_watched = false;
}

/*
 * Whoever looks may notice before the kernel's report is handled that the client has read. If nothing
 * is left, the socket is not watched any more and that report is lost; so the session is told here.
 *
 * Return: how many there are.
 */
static unsigned transit_look(Transit *transit) {
        unsigned n = transit->wire ? wire_unread_fds(transit->wire)
                                   : unread_look(&transit->unread, transit->fd);

        if (n == 0)
                transit_unwatch(transit);
        if (n < transit->charge.amount) {
                user_recharge(transit->user, &transit->charge, USER_TRANSIT_FDS, n);
                if (transit->wire)
                        transit->read(transit->userdata);
        }
        return n;
}

/* ---- afterwards ------------------------------------------------------------ */

/* To the client it is closed. */
static void transit_linger(Transit *transit, UserCharge *charge) {
        transit->fd = wire_release(transit->wire, &transit->unread);
        transit->wire = NULL;
        transit->session = *charge;
        *charge = (UserCharge){};
        LIST_INSERT_HEAD(&transit->transits->lingering, transit, link);
        transit->transits->n_lingering++;
        shutdown(transit->fd, SHUT_RDWR);
        if (!transit_look(transit))
                transit_let_go(transit);
}

Transit *transit_end(Transit *transit, UserCharge *charge) {
        if (!transit)
                return NULL;
        if (transit_look(transit)) {
                transit_linger(transit, charge);
        } else {
                transit_unwatch(transit);
                transit_free(transit);
        }
        return NULL;
}

static void transit_on_read(Transit *transit) {
        if (transit_look(transit) == 0 && !transit->wire)
                transit_let_go(transit);
}

/* One that is reported frees itself at most, so the others of the list are still there. */
static void transits_take(Transits *transits) {
        struct epoll_event list[TRANSITS_EVENTS];
        int n = epoll_wait(transits->epoll, list, TRANSITS_EVENTS, 0);

        for (int i = 0; i < n; ++i)
                transit_on_read(list[i].data.ptr);
}

static void transits_on_event(uv_poll_t *poll, int status, int events) {
        transits_take(poll->data);
}

/* ---- room ------------------------------------------------------------------ */

/* Not without news of what clients have read in this turn of the loop. */
static bool transit_has_room(Transit *transit) {
        if (user_may_charge(transit->user, USER_TRANSIT_FDS, 1))
                return true;
        transits_take(transit->transits);
        return user_may_charge(transit->user, USER_TRANSIT_FDS, 1);
}

bool transit_is_full(Transit *transit) {
        unsigned n;

        if (!transit || !transit->charge.amount ||
            (transit->charge.amount < TRANSIT_MAX &&
             user_may_charge(transit->user, USER_TRANSIT_FDS, 1)))
                return false;
        n = transit_look(transit);
        return n >= TRANSIT_MAX || (n > 0 && !user_may_charge(transit->user, USER_TRANSIT_FDS, 1));
}

Failure *transit_check(Transit *transit) {
        return transit_has_room(transit) ? NULL : transit_failure(transit);
}

Failure *transit_failure(const Transit *transit) {
        const Quota *quota = &transit->user->quotas[USER_TRANSIT_FDS];
        uint64_t used = user_used(transit->user, USER_TRANSIT_FDS);

        return failure_new(FAILURE_QUOTA,
                           "user %s has %llu unread replies with a descriptor, and may have %llu "
                           "while all users have %llu of %llu; let clients read their replies, or "
                           "end those that do not, and try again",
                           transit->user->person->name, (unsigned long long)used,
                           (unsigned long long)quota_most(quota, used),
                           (unsigned long long)quota->taken, (unsigned long long)quota->capacity);
}

int transit_add(Transit *transit) {
        int r;

        if (!transit_has_room(transit))
                return USER_E_QUOTA;
        r = user_recharge(transit->user, &transit->charge, USER_TRANSIT_FDS,
                          transit->charge.amount + 1);
        if (r)
                return r;
        r = transit_watch(transit);
        if (r < 0)
                transit_look(transit); /* it is not queued yet */
        return r;
}
