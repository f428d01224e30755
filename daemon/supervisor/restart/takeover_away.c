/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: dormant sessions. A client library without a thread reconnects with its program's next
 * call, which may be hours away. Until then its arenas stay, and the state of its jobs and modules.
 * A dormant session ends when the client reconnects, or when its process ends, which the kernel
 * reports.
 */

#include "base.h"
#include "jobs.h"
#include "takeover_state.h"
#include "util/log.h"

static void takeover_on_death(void *userdata) {
        TakeoverSession *session = userdata;

        takeover_end_session(session->takeover, session);
}

/* ---- sessions -------------------------------------------------------------- */

TakeoverSession *takeover_find_session(const Takeover *takeover, uint32_t id) {
        TakeoverSession *session;

        HASH_FIND(hh, takeover->sessions, &id, sizeof(id), session);
        return session;
}

bool takeover_expects_user(const Takeover *takeover, uint32_t uid) {
        const TakeoverSession *session;

        for (session = takeover->sessions; session; session = session->hh.next)
                if (session->record.uid == uid)
                        return true;
        return false;
}

int takeover_add_session(Takeover *takeover, const LedgerSession *record, uint32_t slot) {
        TakeoverSession *session;
        User *user;
        int r;

        r = user_get(takeover->engine, record->uid, record->gid, &user);
        if (r < 0)
                return r;
        session = calloc(1, sizeof(*session));
        if (!session)
                return -ENOMEM;

        session->takeover = takeover;
        session->id = record->id;
        session->record = *record;
        session->slot = slot;
        ledger_told_init(&session->told);
        HASH_ADD(hh, takeover->sessions, id, sizeof(session->id), session);
        if (!session->hh.tbl) {
                free(session);
                return -ENOMEM;
        }
        if (record->pid)
                r = process_watch_pid(takeover->engine->loop, record->pid, record->start,
                                      takeover_on_death, session, &session->watch);
        if (r < 0) {
                takeover_forget_session(takeover, session);
                return r;
        }

        session->user = user;
        user->n_sessions++;
        return 0;
}

void takeover_wake_session(TakeoverSession *session) {
        session->watch = process_watch_free(session->watch);
        if (session->user)
                session->user->n_sessions--;
        session->user = NULL;
}

void takeover_forget_session(Takeover *takeover, TakeoverSession *session) {
        takeover_wake_session(session);
        ledger_told_close(takeover->engine->ledger, &session->told);
        HASH_DEL(takeover->sessions, session);
        free(session);
}

void takeover_forget_module(Takeover *takeover, TakeoverModule *module) {
        HASH_DEL(takeover->modules, module);
        free(module);
}

/* ---- what was kept for one of them ----------------------------------------- */

static void takeover_drop_modules(Takeover *takeover, uint32_t session) {
        TakeoverModule *module, *next;

        HASH_ITER (hh, takeover->modules, module, next)
                if (module->record.session == session) {
                        ledger_drop(takeover->engine->ledger, LEDGER_MODULE, module->slot);
                        takeover_forget_module(takeover, module);
                }
}

/* The jobs that it did not resubmit. */
static void takeover_drop_jobs(Takeover *takeover, uint32_t session) {
        Engine *engine = takeover->engine;
        size_t i = ledger_first_job_of(engine->ledger, session);
        const Job *job;
        LedgerJob known;

        while (ledger_next_job_of(engine->ledger, session, &i, &known)) {
                job = job_find(engine, known.owner.id);
                if (known.state != LEDGER_ENDED && (!job || job->record != known.slot))
                        ledger_job_dropped(engine->ledger, known.slot);
        }
}

/* An arena of several sessions is kept as long as any session of that user is dormant. */
static void takeover_drop_arenas(Takeover *takeover, uint32_t session, uint32_t uid) {
        bool is_last = !takeover_expects_user(takeover, uid);
        size_t n_kept = 0;

        for (size_t i = 0; i < takeover->n_arenas; ++i) {
                Arena *arena = takeover->arenas[i];

                if (arena->session == session ||
                    (is_last && arena->session == LEDGER_SHARED && arena->user->uid == uid))
                        arena_unref(arena);
                else
                        takeover->arenas[n_kept++] = arena;
        }
        takeover->n_arenas = n_kept;
}

void takeover_leave_session(Takeover *takeover, TakeoverSession *session) {
        uint32_t id = session->id, uid = session->record.uid;

        takeover_forget_session(takeover, session);
        takeover_drop_modules(takeover, id);
        takeover_drop_jobs(takeover, id);
        takeover_drop_arenas(takeover, id, uid);
        takeover->has_news = true;
        takeover_check(takeover);
}

void takeover_end_session(Takeover *takeover, TakeoverSession *session) {
        log_info("session %u of uid %u closed: it did not reconnect", session->id,
                 session->record.uid);
        ledger_drop(takeover->engine->ledger, LEDGER_SESSION, session->slot);
        takeover_leave_session(takeover, session);
}
