/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handover
 *
 * Looks every few milliseconds. An end that was found in one turn of the loop is told to
 * its client in the next, so nothing must be in flight at some looks in a row.
 */

#include "handover.h"

#include "clients.h"
#include "loop.h"
#include "util/log.h"

#define HANDOVER_LOOKS 3u /* in a row */

static unsigned handover_count(const Supervisor *supervisor) {
        unsigned n = 0;

        for (size_t i = 0; i < supervisor->engine.n_devices; ++i)
                n += supervisor->engine.devices[i].n_running;
        return n;
}

static bool handover_is_quiet(const Supervisor *supervisor) {
        return !handover_count(supervisor) && TAILQ_EMPTY(&supervisor->engine.doomed) &&
               !supervisor->clients.detached_ops->is_writing(supervisor->clients.detached);
}

/* Who comes now waits for the next. */
static void handover_look(Supervisor *supervisor) {
        supervisor->clients.listener = listener_close(supervisor->clients.listener);
        supervisor->n_quiet = handover_is_quiet(supervisor) ? supervisor->n_quiet + 1 : 0;
}

static void handover_on_timer(uv_timer_t *timer) {
        Supervisor *supervisor = timer->data;

        handover_look(supervisor);
        if (supervisor->n_quiet < HANDOVER_LOOKS && uv_hrtime() < supervisor->handover_ns)
                return;

        if (supervisor->n_quiet < HANDOVER_LOOKS)
                log_warning("handing over with %u jobs in flight: they did not end within %d s",
                            handover_count(supervisor), KEEPER_HANDOVER_S);
        supervisor->has_handed_over = true;
        uv_timer_stop(timer);
        uv_stop(&supervisor->loop);
}

void handover_begin(Supervisor *supervisor) {
        if (supervisor->engine.is_closing || supervisor->engine.is_paused)
                return;

        log_info("handing over: %u jobs are in flight", handover_count(supervisor));
        supervisor->engine.is_paused = true;
        supervisor->handover_ns = uv_hrtime() + KEEPER_HANDOVER_S * 1000000000ull;
        uv_timer_start(&supervisor->quit_timer, handover_on_timer, SUPERVISOR_QUIT_STEP_MS,
                       SUPERVISOR_QUIT_STEP_MS);
}
