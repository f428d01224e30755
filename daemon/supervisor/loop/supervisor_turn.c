/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of the loop: what is done before it sleeps, whether it does, and who is
 * looked at meanwhile.
 */

#include <poll.h>

#include "jobs.h"
#include "util/list.h"
#include "clients.h"
#include "supervisor.h"
#include "restart.h"
#include "workers.h"

#define SUPERVISOR_ROUNDS_MAX 64u /* of ending and dispatching in one turn */
#define SUPERVISOR_SLICE      4u /* rings that brought something, until that goes on to the workers */
#define SUPERVISOR_NAP_MAX_NS 100000ull
#define SUPERVISOR_LOOKS_MAX  8u /* at workers and rings in one turn, as long as each finds jobs */

static void supervisor_settle(Supervisor *supervisor) {
        for (unsigned i = 0; i < SUPERVISOR_ROUNDS_MAX; ++i) {
                ending_run(&supervisor->engine);
                scheduler_run(&supervisor->engine);
                if (TAILQ_EMPTY(&supervisor->engine.doomed))
                        return;
        }
}

static bool supervisor_is_busy(const Supervisor *supervisor) {
        for (size_t i = 0; i < supervisor->engine.n_devices; ++i)
                if (supervisor->engine.devices[i].n_running > 0)
                        return true;
        return false;
}

/* Whether to look again rather than sleep. */
static bool supervisor_may_poll(Supervisor *supervisor) {
        uint64_t poll_ns = supervisor->config->poll_us * 1000ull, now_ns;

        if (!poll_ns || (!supervisor->engine.is_eventful && !supervisor->is_polling))
                return false;

        now_ns = supervisor->polled_ns = engine_now(&supervisor->engine);
        if (supervisor->engine.is_eventful)
                pace_event(&supervisor->pace, now_ns);
        supervisor->engine.is_eventful = false;
        return !pace_may_sleep(&supervisor->pace, poll_ns, supervisor_is_busy(supervisor), now_ns);
}

/* Return: false: one is awake, or has more to say already. */
static bool supervisor_flush_workers(Supervisor *supervisor, bool may_sleep) {
        bool all_sleep = may_sleep;
        Worker *worker, *next;

        HASH_ITER (hh, supervisor->workers, worker, next) {
                worker_flush(worker);
                if (may_sleep)
                        all_sleep &= worker_sleep(worker);
                else if (worker->n_inflight)
                        worker_wake(worker);
        }
        return all_sleep;
}

static Session *supervisor_next_ring(Supervisor *supervisor) {
        Session *session = TAILQ_FIRST(&supervisor->looking);

        if (session) {
                TAILQ_REMOVE(&supervisor->looking, session, look_link);
                TAILQ_INSERT_TAIL(&supervisor->looking, session, look_link);
        }
        return session;
}

/*
 * Each gets a bounded part of the turn, as from its socket. What has come from some goes to the workers before
 * the others are read: else those that wait for one job each are all served in step, and supervisor, worker and
 * device take turns where they could work side by side. Sessions may end meanwhile, hence always the first one.
 */
static void supervisor_look_at_rings(Supervisor *supervisor) {
        unsigned n_heard = 0;
        Session *session;
        size_t n = 0;

        TAILQ_FOREACH (session, &supervisor->looking, look_link)
                n++;
        while (n-- && (session = supervisor_next_ring(supervisor))) {
                n_heard += session_look(session);
                if (n_heard >= SUPERVISOR_SLICE) {
                        n_heard = 0;
                        supervisor_settle(supervisor);
                        supervisor_flush_workers(supervisor, false);
                }
        }
        supervisor_next_ring(supervisor); /* each look begins with another */
}

/* Those from whom nothing came for a while ring from now on; all do if we @may_sleep. Return: false:
 * something came meanwhile. */
static bool supervisor_rest_rings(Supervisor *supervisor, bool may_sleep) {
        uint64_t look_ns = MAX(SESSION_LOOK_NS, supervisor->config->poll_us * 1000ull);
        bool all_rest = may_sleep;
        Session *session, *next;

        TAILQ_FOREACH_SAFE (session, &supervisor->looking, look_link, next) {
                if (!session->looked_ns)
                        session->looked_ns = supervisor->polled_ns;
                if (may_sleep || supervisor->polled_ns > session->looked_ns + look_ns)
                        all_rest &= session_rest(session);
        }
        return all_rest;
}

/* Each once: one that was held up is served then, and what that brings waits for the next turn,
 * as the others have. */
static void supervisor_flush_sessions(Supervisor *supervisor) {
        Session *session;
        size_t n = 0;

        TAILQ_FOREACH (session, &supervisor->flushing, flush_link)
                n++;
        while (n-- && (session = TAILQ_FIRST(&supervisor->flushing)))
                session_flush(session);
        if (!TAILQ_EMPTY(&supervisor->flushing))
                supervisor->is_stirred = true;
}

/* At whoever is awake. Return: a job came or ended. */
static bool supervisor_look(Supervisor *supervisor) {
        bool was_eventful = supervisor->engine.is_eventful, found;
        Worker *worker, *next;

        supervisor->engine.is_eventful = false;
        supervisor->engine.now_ns = 0;
        HASH_ITER (hh, supervisor->workers, worker, next)
                if (worker->is_awake)
                        worker_read(worker);
        supervisor_look_at_rings(supervisor);

        found = supervisor->engine.is_eventful;
        supervisor->engine.is_eventful |= was_eventful;
        return found;
}

/* To ask the kernel for events takes a quarter of what a job does: while jobs come by rings not at each look. */
static void supervisor_on_idle(uv_idle_t *idle) {
        Supervisor *supervisor = idle->data;

        for (unsigned i = 1; supervisor_look(supervisor) && i < SUPERVISOR_LOOKS_MAX; ++i) {
                if (TAILQ_EMPTY(&supervisor->looking))
                        return;
                supervisor_settle(supervisor);
                supervisor_flush_workers(supervisor, false);
                supervisor_flush_sessions(supervisor);
        }
}

/* While a takeover awaits somebody, only if what they wait for may have come. */
static bool supervisor_may_serve_deferred(const Supervisor *supervisor) {
        return !takeover_is_awaiting(supervisor) || supervisor->turn <= supervisor->news_turn;
}

/* A request deferred in one turn is served when every connection was read in the next. */
static void supervisor_serve_deferred(Supervisor *supervisor) {
        Session *session, *next;

        supervisor->turn++;
        if (takeover_is_awaiting(supervisor) && takeover_has_news(supervisor))
                supervisor->news_turn = supervisor->turn + 2; /* those deferred just now included */
        if (!supervisor_may_serve_deferred(supervisor))
                return;
        TAILQ_FOREACH_SAFE (session, &supervisor->deferring, deferred_link, next)
                if (supervisor->turn >= session->deferred_turn + 2)
                        session_serve_deferred(session);
}

/* Between turns that found nothing. Whoever rings ends it; who need not, since this one is awake,
 * waits no longer than waking it would take. */
static void supervisor_nap(const Supervisor *supervisor) {
        struct pollfd fd = {.fd = uv_backend_fd(&supervisor->loop), .events = POLLIN};
        uint64_t nap_ns = pace_next(&supervisor->pace, supervisor->polled_ns);
        struct timespec time = {.tv_nsec = (long)MIN(nap_ns, SUPERVISOR_NAP_MAX_NS)};

        if (nap_ns > 0)
                (void)ppoll(&fd, 1, &time, NULL);
}

static bool supervisor_has_work(const Supervisor *supervisor) {
        return supervisor->is_stirred || !TAILQ_EMPTY(&supervisor->engine.doomed) ||
               (!TAILQ_EMPTY(&supervisor->deferring) && supervisor_may_serve_deferred(supervisor));
}

void supervisor_on_prepare(uv_prepare_t *prepare) {
        Supervisor *supervisor = prepare->data;
        bool may_sleep;

        supervisor->is_stirred = false;
        supervisor->engine.now_ns = 0;
        supervisor_serve_deferred(supervisor);
        supervisor_settle(supervisor);
        supervisor->is_polling = supervisor_may_poll(supervisor);
        may_sleep = !supervisor->is_polling;
        may_sleep = supervisor_rest_rings(supervisor, may_sleep);
        may_sleep = supervisor_flush_workers(supervisor, may_sleep);
        supervisor_flush_sessions(supervisor);
        if (may_sleep && !supervisor_has_work(supervisor))
                uv_idle_stop(&supervisor->idle);
        else
                uv_idle_start(&supervisor->idle, supervisor_on_idle);
        if (supervisor->is_polling && !supervisor_has_work(supervisor))
                supervisor_nap(supervisor);
        supervisor->engine.now_ns = 0; /* it may sleep now */
}
