/* SPDX-License-Identifier: Apache-2.0 */
#include "clients.h"

#include "arrivals.h"
#include "snapshot.h"
#include "util/list.h"

#define CLIENTS_SLICE                                                                              \
        4u /* sessions with requests that are served before their jobs are passed to the workers */

int clients_init(Clients *clients, Engine *engine) {
        int r;

        clients->engine = engine;
        TAILQ_INIT(&clients->flushing);
        TAILQ_INIT(&clients->keeping);
        TAILQ_INIT(&clients->deferring);
        TAILQ_INIT(&clients->polled);
        TAILQ_INIT(&clients->lent);
        serving_init(&clients->serving);
        arrivals_init(clients);
        snapshot_init(&clients->snapshot, engine->loop);
        r = bump_new(&clients->bump);
        return r < 0 ? r : transits_new(engine->loop, &clients->transits);
}

void clients_fini(Clients *clients) {
        serving_fini(&clients->serving);
        bump_free(clients->bump);
}

void clients_close(Clients *clients) {
        Session *session, *next;

        HASH_ITER (hh, clients->sessions, session, next) {
                lending_free(session);
                session_close(session);
        }
}

void clients_stop_listening(Clients *clients) {
        clients->listener = listener_close(clients->listener);
        arrivals_close(clients);
}

void clients_close_handles(Clients *clients) {
        clients_stop_listening(clients);
        snapshot_close(&clients->snapshot);
        clients->transits = transits_close(clients->transits);
}

void clients_refuse(Clients *clients, int code, const char *why) {
        Session *session, *next;

        clients_stop_listening(clients);
        HASH_ITER (hh, clients->sessions, session, next)
                session_refuse(session, failure_new(code, "%s", why));
}

void clients_tick(Clients *clients, uint64_t now_ns) {
        Session *session, *next;

        clients_heed_answers(clients); /* or there are none, and nobody waits for ever */
        HASH_ITER (hh, clients->sessions, session, next)
                session_tick(session, now_ns);
}

/* ---- rings ----------------------------------------------------------------- */

static Session *clients_next_ring(Clients *clients) {
        Session *session = TAILQ_FIRST(&clients->polled);

        if (session) {
                TAILQ_REMOVE(&clients->polled, session, ring.link);
                TAILQ_INSERT_TAIL(&clients->polled, session, ring.link);
        }
        return session;
}

/*
 * Each ring gets a bounded part of the turn. The jobs of some rings go to the workers before the other
 * rings are read. Otherwise clients with one job each would be served in step, and supervisor, worker
 * and device would take turns instead of working side by side. Sessions may end meanwhile, so
 * the loop always takes the first one.
 */
void clients_read_rings(Clients *clients, void (*pass_on)(void *userdata), void *userdata) {
        unsigned n_heard = 0;
        Session *session;
        size_t n = 0;

        TAILQ_FOREACH (session, &clients->polled, ring.link)
                n++;
        while (n-- && (session = clients_next_ring(clients))) {
                n_heard += session_read_ring(session);
                if (n_heard >= CLIENTS_SLICE) {
                        n_heard = 0;
                        pass_on(userdata);
                }
        }
        clients_next_ring(clients); /* the next call begins with another ring */
}

bool clients_unpoll_rings(Clients *clients, bool may_sleep, uint64_t now_ns) {
        uint64_t poll_ns = MAX(SESSION_POLL_NS, clients->engine->config->poll_us * 1000ull);
        bool all_unpolled = may_sleep;
        Session *session, *next;

        TAILQ_FOREACH_SAFE (session, &clients->polled, ring.link, next) {
                if (!session->ring.received_ns)
                        session->ring.received_ns = now_ns;
                if (may_sleep || now_ns > session->ring.received_ns + poll_ns)
                        all_unpolled &= session_unpoll_ring(session);
        }
        return all_unpolled;
}

/* ---- turns ----------------------------------------------------------------- */

/* The link wakes the loop up when it has sent something. */
static void clients_take_kept(Clients *clients) {
        Session *session;

        while ((session = TAILQ_FIRST(&clients->keeping)) &&
               keeper_link_has_sent(clients->engine->keeper, session->flush.position)) {
                session_unqueue(session);
                session_flush_later(session);
        }
}

void clients_heed_answers(Clients *clients) {
        clients->arrivals.is_due = true;
}

void clients_begin_turn(Clients *clients, bool gives_parts, void (*pass_on)(void *userdata),
                        void *userdata) {
        ServingMember *member;
        unsigned n_served = 0;

        lendings_review(clients);
        arrivals_run(clients);
        serving_begin_turn(&clients->serving, gives_parts);
        while ((member = serving_next(&clients->serving))) {
                session_serve_waiting(container_of(member, Session, serving));
                /* It may have submitted the last jobs of a message, which deferred requests name. */
                clients->news_turn = clients->turn + 2 * CLIENTS_DEFER_TURNS;
                if (++n_served % CLIENTS_SLICE == 0)
                        pass_on(userdata);
        }
}

bool clients_has_waiting(const Clients *clients) {
        return serving_has_waiting(&clients->serving);
}

/* Each session once: a held-up session is served here, and its new requests wait for the next turn. */
void clients_flush(Clients *clients) {
        Session *session;
        size_t n = 0;

        clients_take_kept(clients);
        TAILQ_FOREACH (session, &clients->flushing, flush.link)
                n++;
        while (n-- && (session = TAILQ_FIRST(&clients->flushing)))
                session_flush(session);
        if (!TAILQ_EMPTY(&clients->flushing))
                clients->engine->has_new_work = true;
}

bool clients_has_deferred(const Clients *clients) {
        return !TAILQ_EMPTY(&clients->deferring) &&
               (!clients->is_awaiting || clients->turn <= clients->news_turn);
}

/* A deferred request is served after every connection was read once more. */
void clients_serve_deferred(Clients *clients, bool is_awaiting, bool has_news) {
        Session *session, *next;

        clients->turn++;
        clients->is_awaiting = is_awaiting;
        if (is_awaiting && has_news)
                clients->news_turn =
                        clients->turn + CLIENTS_DEFER_TURNS; /* those deferred just now included */
        if (!clients_has_deferred(clients))
                return;
        TAILQ_FOREACH_SAFE (session, &clients->deferring, deferred.link, next)
                if (clients->turn >= session->deferred.turn + CLIENTS_DEFER_TURNS)
                        session_serve_deferred(session);
}
