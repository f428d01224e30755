/* SPDX-License-Identifier: Apache-2.0 */
#include "handover.h"

#include "keeper/protocol.h"
#include "util/log.h"

#define HANDOVER_CHECKS                                                                            \
        3u /* consecutive: an end found in one turn is sent to its client in the next */
#define HANDOVER_STEP_MS 10u

void handover_init(Handover *handover, Engine *engine, Clients *clients,
                   void (*done)(void *userdata), void *userdata) {
        handover->engine = engine;
        handover->clients = clients;
        handover->done = done;
        handover->userdata = userdata;
        uv_timer_init(engine->loop, &handover->timer);
        handover->timer.data = handover;
}

void handover_close(Handover *handover) {
        uv_close((uv_handle_t *)&handover->timer, NULL);
}

static unsigned handover_count(const Handover *handover) {
        const Engine *engine = handover->engine;
        unsigned n = 0;

        for (size_t i = 0; i < engine->n_devices; ++i)
                n += engine->devices[i].n_running;
        return n;
}

/* A detached job runs again if its end is not synced. */
static bool handover_is_quiet(const Handover *handover) {
        const Clients *clients = handover->clients;

        return !handover_count(handover) && TAILQ_EMPTY(&clients->lent) &&
               backlog_is_empty(handover->engine) &&
               !clients->detached_ops->is_writing(clients->detached);
}

static void handover_on_timer(uv_timer_t *timer) {
        Handover *handover = timer->data;

        /* Clients that connect now wait for the next supervisor. */
        clients_stop_listening(handover->clients);
        handover->n_quiet = handover_is_quiet(handover) ? handover->n_quiet + 1 : 0;
        if (handover->n_quiet < HANDOVER_CHECKS && uv_hrtime() < handover->until_ns)
                return;

        if (handover->n_quiet < HANDOVER_CHECKS)
                log_warning("handing over with %u jobs in flight, which did not end within %d s",
                            handover_count(handover), KEEPER_HANDOVER_S);
        handover->is_done = true;
        uv_timer_stop(timer);
        handover->done(handover->userdata);
}

void handover_begin(Handover *handover) {
        if (handover->engine->is_closing || handover->engine->is_paused)
                return;

        log_info("handing over: waiting for %u jobs in flight", handover_count(handover));
        handover->engine->is_paused = true;
        handover->until_ns = uv_hrtime() + KEEPER_HANDOVER_S * 1000000000ull;
        uv_timer_start(&handover->timer, handover_on_timer, HANDOVER_STEP_MS, HANDOVER_STEP_MS);
}
