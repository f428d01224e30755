/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: its states. See takeover.h.
 */

#include "takeover.h"

#include <string.h>

#include "base.h"
#include "jobs.h"
#include "takeover_state.h"
#include "util/log.h"

static void takeover_on_tick(uv_timer_t *timer);
static void takeover_on_time(uv_timer_t *timer);

/* ---- life ------------------------------------------------------------------ */

int takeover_new(Engine *engine, Clients *clients, void (*may_listen)(void *userdata),
                 void *userdata, Takeover **ret_takeover) {
        Takeover *takeover;
        int r;

        takeover = calloc(1, sizeof(*takeover));
        if (!takeover)
                return -ENOMEM;
        r = uv_timer_init(engine->loop, &takeover->timer);
        if (r < 0) {
                free(takeover);
                return r;
        }

        takeover->engine = engine;
        takeover->clients = clients;
        takeover->may_listen = may_listen;
        takeover->userdata = userdata;
        takeover->timer.data = takeover;
        *ret_takeover = takeover;
        return 0;
}

static void takeover_on_close(uv_handle_t *handle) {
        free(handle->data);
}

/* Keeps the ledger unchanged. */
Takeover *takeover_free(Takeover *takeover) {
        if (!takeover)
                return NULL;

        while (takeover->sessions)
                takeover_forget_session(takeover, takeover->sessions);
        while (takeover->modules)
                takeover_forget_module(takeover, takeover->modules);
        takeover_drop_held(takeover);
        uv_close((uv_handle_t *)&takeover->timer, takeover_on_close);
        return NULL;
}

/* ---- what is so now -------------------------------------------------------- */

bool takeover_is_awaiting(const Takeover *takeover) {
        return takeover && !takeover->is_over;
}

bool takeover_serves(const Takeover *takeover) {
        return !takeover || takeover->state == TAKEOVER_SERVING;
}

bool takeover_lets_in(const Takeover *takeover) {
        return takeover_serves(takeover) || takeover->is_late;
}

bool takeover_has_news(Takeover *takeover) {
        bool has_news = takeover->has_news;

        takeover->has_news = false;
        return has_news;
}

/* ---- its beginning --------------------------------------------------------- */

static uint64_t takeover_wait_ms(const Takeover *takeover) {
        return takeover->engine->config->takeover_s * 1000ull;
}

static void takeover_serve(Takeover *takeover) {
        takeover->state = TAKEOVER_SERVING;
        takeover->has_news = true; /* for clients that connected before */
        uv_timer_start(&takeover->timer, takeover_on_time, takeover_wait_ms(takeover), 0);
        takeover_check(takeover);
        takeover->may_listen(takeover->userdata);
}

/* A new ledger, if there is none or it cannot be used. Earlier supervisors are unknown then, and so is
 * all that the keeper held for them. */
static int takeover_begin_afresh(Takeover *takeover) {
        takeover_drop_held(takeover);
        takeover->clients->kept_at = keeper_link_keep(takeover->engine->keeper, KEEPER_KEY_LEDGER,
                                                      ledger_fd(takeover->engine->ledger));
        takeover_serve(takeover);
        return 0;
}

static void takeover_adopt_ledger(Takeover *takeover, Ledger *ledger) {
        Engine *engine = takeover->engine;

        ledger_free(engine->ledger);
        engine->ledger = ledger;
        takeover->clients->last_session = (uint32_t)ledger_last_id(ledger, LEDGER_SESSION);
        engine->last.arena = ledger_last_id(ledger, LEDGER_ARENA);
        engine->last.module = ledger_last_id(ledger, LEDGER_MODULE);
}

/* Return: NULL: the ledger is in use now. Else why not. */
static const char *takeover_open_ledger(Takeover *takeover, int fd) {
        Ledger *ledger;
        int r;

        r = ledger_open(fd, &ledger);
        if (r == LEDGER_E_VERSION)
                return "of another version";
        if (r == LEDGER_E_DAMAGED)
                return "damaged";
        if (r < 0)
                return strerror(-r);
        takeover_adopt_ledger(takeover, ledger);
        return NULL;
}

int takeover_begin(Takeover *takeover) {
        int fd = takeover_take_fd(takeover, KEEPER_KEY_LEDGER), r;
        const char *problem;

        if (fd < 0)
                return takeover_begin_afresh(takeover);
        takeover->began_ns = uv_hrtime();
        problem = takeover_open_ledger(takeover, fd);
        if (problem) {
                log_error("the previous supervisor's ledger is %s and was set aside: its clients "
                          "must connect and submit again",
                          problem);
                return takeover_begin_afresh(takeover);
        }

        r = takeover_read(takeover);
        if (r < 0)
                return r;
        takeover->state = TAKEOVER_DISCOVERING;
        uv_timer_start(&takeover->timer, takeover_on_tick, TAKEOVER_TICK_MS, TAKEOVER_TICK_MS);
        return 0;
}

void takeover_on_devices(Takeover *takeover) {
        if (takeover->state != TAKEOVER_DISCOVERING)
                return;
        takeover_restore(takeover);
        log_notice("took over after %.3f s: %u sessions may reconnect",
                   (double)(uv_hrtime() - takeover->began_ns) / 1e9,
                   HASH_COUNT(takeover->sessions));
        takeover_serve(takeover);
}

static void takeover_let_in_late(Takeover *takeover) {
        log_warning("the GPU driver has not listed its devices for %u s: clients can connect, and "
                    "their jobs wait",
                    TAKEOVER_LATE_MS / 1000);
        takeover->is_late = true;
        takeover->may_listen(takeover->userdata);
}

/* DISCOVERING */
static void takeover_on_tick(uv_timer_t *timer) {
        Takeover *takeover = timer->data;
        uint64_t ms = (uv_hrtime() - takeover->began_ns) / 1000000;

        if (!takeover->is_late && ms >= TAKEOVER_LATE_MS)
                takeover_let_in_late(takeover);
        if (ms >= takeover_wait_ms(takeover) && takeover->engine->problem)
                takeover_on_devices(
                        takeover); /* there are none: jobs without a need for one go on */
}

/* ---- its end --------------------------------------------------------------- */

void takeover_check(Takeover *takeover) {
        if (takeover->state != TAKEOVER_SERVING || takeover->sessions)
                return;
        takeover->is_over = true;
        uv_timer_stop(&takeover->timer);
}

/* SERVING for takeover_s */
static void takeover_on_time(uv_timer_t *timer) {
        Takeover *takeover = timer->data;
        TakeoverSession *session, *next;

        takeover->is_over = true;
        HASH_ITER (hh, takeover->sessions, session, next) {
                const LedgerSession *record = &session->record;

                if (session->is_claimed)
                        continue;
                if (!session->watch) { /* its end cannot be observed */
                        takeover_end_session(takeover, session);
                        continue;
                }
                log_info("session %u of uid %u has not reconnected: it is kept as long as process "
                         "%d lives",
                         session->id, record->uid, record->pid);
        }
}
