/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of the loop: the work before it sleeps, whether it sleeps, and what it polls meanwhile.
 */

#include <poll.h>

#include "jobs.h"
#include "util/activity.h"
#include "util/list.h"
#include "clients.h"
#include "supervisor.h"
#include "restart.h"
#include "workers.h"
#include "util/log.h"

#define SUPERVISOR_ROUNDS_MAX 64u  /* rounds of ending and dispatching in one turn */
#define SUPERVISOR_STEPS_MAX  512u /* of the backlog in one turn */
#define SUPERVISOR_NAP_MAX_NS 100000ull
#define SUPERVISOR_POLLS_MAX                                                                       \
        8u /* polls of workers and rings in one turn, as long as each finds jobs */

/* One request may end all jobs of a user: the next turns end the rest. */
static void supervisor_settle(Supervisor *supervisor) {
        size_t *n_left = &supervisor->backlog_left;

        for (unsigned i = 0; i < SUPERVISOR_ROUNDS_MAX; ++i) {
                if (!backlog_is_empty(&supervisor->engine))
                        *n_left -= MIN(backlog_run(&supervisor->engine, *n_left), *n_left);
                scheduler_run(&supervisor->engine);
                if (backlog_is_empty(&supervisor->engine) || *n_left == 0)
                        return;
        }
}

static bool supervisor_is_busy(const Supervisor *supervisor) {
        for (size_t i = 0; i < supervisor->engine.n_devices; ++i)
                if (supervisor->engine.devices[i].n_running > 0)
                        return true;
        return false;
}

/* Whether to poll again instead of sleeping. */
static bool supervisor_may_poll(Supervisor *supervisor) {
        uint64_t poll_ns = supervisor->config->poll_us * 1000ull, now_ns;

        if (!poll_ns || (!supervisor->engine.is_eventful && !supervisor->is_polling))
                return false;

        now_ns = supervisor->polled_ns = engine_now(&supervisor->engine);
        if (supervisor->engine.is_eventful)
                pace_event(&supervisor->pace, now_ns);
        supervisor->engine.is_eventful = false;
        if (cores_are_busy(&supervisor->cores, now_ns))
                return false;
        return !pace_may_sleep(&supervisor->pace, poll_ns, supervisor_is_busy(supervisor), now_ns);
}

/* Jobs of some sessions go to the workers before the other sessions are served. */
static void supervisor_pass_on(void *userdata) {
        supervisor_settle(userdata);
        workers_flush(&((Supervisor *)userdata)->workers, false);
}

/* Polls workers and rings. Return: a job arrived or ended. */
static bool supervisor_poll(Supervisor *supervisor) {
        bool was_eventful = supervisor->engine.is_eventful, found;

        supervisor->engine.is_eventful = false;
        supervisor->engine.now_ns = 0;
        workers_read(&supervisor->workers);
        clients_read_rings(&supervisor->clients, supervisor_pass_on, supervisor);

        found = supervisor->engine.is_eventful;
        supervisor->engine.is_eventful |= was_eventful;
        return found;
}

/* Asking the kernel for events takes a quarter of a job's time: with ring traffic, not at each
 * poll. */
static void supervisor_on_idle(uv_idle_t *idle) {
        Supervisor *supervisor = idle->data;

        for (unsigned i = 1; supervisor_poll(supervisor) && i < SUPERVISOR_POLLS_MAX; ++i) {
                if (TAILQ_EMPTY(&supervisor->clients.polled))
                        return;
                supervisor_settle(supervisor);
                workers_flush(&supervisor->workers, false);
                clients_flush(&supervisor->clients);
        }
}

static void supervisor_serve_deferred(Supervisor *supervisor) {
        bool is_awaiting = takeover_is_awaiting(supervisor->takeover);

        clients_serve_deferred(&supervisor->clients, is_awaiting,
                               is_awaiting && takeover_has_news(supervisor->takeover));
}

/* Naps between turns that found nothing. The bell ends a nap. Peers that do not ring because the loop
 * polls wait no longer than waking it would take. */
static void supervisor_nap(const Supervisor *supervisor) {
        struct pollfd fd = {.fd = uv_backend_fd(&supervisor->loop), .events = POLLIN};
        uint64_t nap_ns = pace_next(&supervisor->pace, false, supervisor->polled_ns);
        struct timespec time = {.tv_nsec = (long)MIN(nap_ns, SUPERVISOR_NAP_MAX_NS)};

        if (nap_ns > 0)
                (void)ppoll(&fd, 1, &time, NULL);
}

static bool supervisor_cores_were_busy(Supervisor *supervisor, uint64_t now_ns) {
        if (cores_are_busy(&supervisor->cores, now_ns))
                supervisor->timed_until_ns = now_ns + SUPERVISOR_TIMED_NS;
        return now_ns < supervisor->timed_until_ns;
}

/* If several people have requests while other programs want the cores, people get their parts by the clock,
 * not in each turn, so that the loop rests (clients/serving.h). */
static bool supervisor_parts_are_due(Supervisor *supervisor) {
        uint64_t now_ns;

        supervisor->is_timed = false;
        if (!serving_is_shared(&supervisor->clients.serving))
                return true;
        now_ns = engine_now(&supervisor->engine);
        supervisor->is_timed = supervisor_cores_were_busy(supervisor, now_ns);
        if (supervisor->is_timed && now_ns - supervisor->given_ns < SUPERVISOR_PART_NS)
                return false;
        supervisor->given_ns = now_ns;
        return true;
}

static bool supervisor_has_requests(const Supervisor *supervisor) {
        return supervisor->is_timed ? serving_has_ready(&supervisor->clients.serving)
                                    : clients_has_waiting(&supervisor->clients);
}

static bool supervisor_has_work(const Supervisor *supervisor) {
        return supervisor->engine.has_new_work || !backlog_is_empty(&supervisor->engine) ||
               clients_has_deferred(&supervisor->clients) || supervisor_has_requests(supervisor);
}

static void supervisor_on_part_timer(uv_timer_t *timer) {
        /* It only ends the sleep. */
}

static void supervisor_end_turn(Supervisor *supervisor) {
        StallTurn turn;
        char text[160];

        if (!stall_end_turn(&supervisor->stall, &turn) || !limit_log(&supervisor->turn_log_limit))
                return;
        activity_describe(&turn.longest, text, sizeof(text));
        log_warning("a turn of the loop took %u ms of CPU time, %u ms of them for %s",
                    (unsigned)(stall_took_ns(&turn) / 1000000),
                    (unsigned)(turn.longest_ns / 1000000), text);
}

void supervisor_on_prepare(uv_prepare_t *prepare) {
        Supervisor *supervisor = prepare->data;
        bool may_sleep;

        supervisor->engine.has_new_work = false;
        supervisor->engine.now_ns = 0;
        supervisor->backlog_left = SUPERVISOR_STEPS_MAX;
        clients_begin_turn(&supervisor->clients, supervisor_parts_are_due(supervisor),
                           supervisor_pass_on, supervisor);
        activity_shift(ACTIVITY_DISPATCH);
        supervisor_serve_deferred(supervisor);
        supervisor_settle(supervisor);
        supervisor->is_polling = supervisor_may_poll(supervisor);
        may_sleep = !supervisor->is_polling;
        may_sleep = clients_unpoll_rings(&supervisor->clients, may_sleep, supervisor->polled_ns);
        may_sleep = workers_flush(&supervisor->workers, may_sleep);
        clients_flush(&supervisor->clients);
        if (may_sleep && !supervisor_has_work(supervisor))
                uv_idle_stop(&supervisor->idle);
        else
                uv_idle_start(&supervisor->idle, supervisor_on_idle);
        if (clients_has_waiting(&supervisor->clients))
                uv_timer_start(&supervisor->part_timer, supervisor_on_part_timer,
                               SUPERVISOR_PART_NS / 1000000, 0);
        supervisor_end_turn(supervisor);
        activity_shift(ACTIVITY_EVENTS);
        if (supervisor->is_polling && !supervisor_has_work(supervisor))
                supervisor_nap(supervisor);
        supervisor->engine.now_ns = 0; /* it may sleep now */
}
