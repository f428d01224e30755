/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include <string.h>

#include "jobs.h"
#include "registry.h"
#include "session.h"
#include "util/activity.h"
#include "util/list.h"
#include "util/log.h"

struct Arrival {
        TAILQ_ENTRY(Arrival) link; /* clients->arrivals.list */
        int fd;
        Peer peer;
};

void arrivals_init(Clients *clients) {
        uint64_t n_sessions = clients->engine->quotas[USER_SESSIONS].capacity;

        TAILQ_INIT(&clients->arrivals.list);
        quota_init(&clients->arrivals.quota,
                   MAX(ARRIVALS_LEAST, MIN(ARRIVALS_MAX, n_sessions / 4)));
}

static void arrival_admit(Clients *clients, int fd, const Peer *peer, Failure *refusal) {
        int r;

        r = session_new(clients, fd, peer, refusal);
        if (r < 0) {
                log_warning("rejected a connection of uid %u: %s", (unsigned)peer->uid,
                            strerror(-r));
                close(fd);
        }
}

static uint64_t arrivals_count(const Arrivals *arrivals, uid_t uid) {
        const Arrival *arrival;
        uint64_t n = 0;

        TAILQ_FOREACH (arrival, &arrivals->list, link)
                n += arrival->peer.uid == uid;
        return n;
}

static Failure *arrivals_keep(Arrivals *arrivals, int fd, const Peer *peer) {
        uint64_t n_held = arrivals_count(arrivals, peer->uid);
        Arrival *arrival;

        if (!quota_take(&arrivals->quota, n_held, 1))
                return failure_new(FAILURE_QUOTA,
                                   "too many connections wait until the system has answered who "
                                   "uid %u is; try again later",
                                   (unsigned)peer->uid);
        arrival = calloc(1, sizeof(*arrival));
        if (!arrival) {
                quota_give(&arrivals->quota, n_held + 1, 1);
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a connection");
        }
        arrival->fd = fd;
        arrival->peer = *peer;
        TAILQ_INSERT_TAIL(&arrivals->list, arrival, link);
        return NULL;
}

void arrivals_add(Clients *clients, int fd, const Peer *peer) {
        Failure *refusal = NULL;

        if (user_is_awaited(clients->engine, peer->uid)) {
                refusal = arrivals_keep(&clients->arrivals, fd, peer);
                if (!refusal)
                        return;
        }
        arrival_admit(clients, fd, peer, refusal);
}

/* Return: its descriptor. */
static int arrival_take(Arrivals *arrivals, Arrival *arrival, Peer *ret_peer) {
        int fd = arrival->fd;

        quota_give(&arrivals->quota, arrivals_count(arrivals, arrival->peer.uid), 1);
        TAILQ_REMOVE(&arrivals->list, arrival, link);
        *ret_peer = arrival->peer;
        free(arrival);
        return fd;
}

void arrivals_run(Clients *clients) {
        Arrivals *arrivals = &clients->arrivals;
        Arrival *arrival, *next;
        unsigned n = 0;
        Peer peer;

        if (!arrivals->is_due)
                return;
        arrivals->is_due = false;
        TAILQ_FOREACH_SAFE (arrival, &arrivals->list, link, next) {
                if (user_is_awaited(clients->engine, arrival->peer.uid))
                        continue;
                if (n++ == ARRIVALS_SEE_BURST) {
                        arrivals->is_due = clients->engine->has_new_work = true;
                        return;
                }
                activity_begin(ACTIVITY_CONNECTION, 0, arrival->peer.uid, 0);
                arrival_admit(clients, arrival_take(arrivals, arrival, &peer), &peer, NULL);
        }
        users_take_answers(clients->engine); /* those for which nobody waits here */
}

void arrivals_close(Clients *clients) {
        Arrival *arrival;
        Peer peer;

        while ((arrival = TAILQ_FIRST(&clients->arrivals.list)))
                close(arrival_take(&clients->arrivals, arrival, &peer));
}
