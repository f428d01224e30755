/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: what the ledger says, read once.
 */

#include "base.h"
#include "loop.h"
#include "takeover_state.h"

static int takeover_read_session(Takeover *takeover, const LedgerSession *record, uint32_t slot) {
        TakeoverSession *session;

        if (record->pid && !process_age_is_alive(record->pid, record->start)) {
                ledger_drop(takeover->supervisor->engine.ledger, LEDGER_SESSION, slot);
                return 0;
        }
        session = calloc(1, sizeof(*session));
        if (!session)
                return -ENOMEM;

        session->id = record->id;
        session->record = *record;
        session->slot = slot;
        ledger_told_init(&session->told);
        HASH_ADD(hh, takeover->sessions, id, sizeof(session->id), session);
        if (session->hh.tbl)
                return 0;
        free(session);
        return -ENOMEM;
}

/* Killed while it wrote a change, the one before us left both: what either says holds. */
static int takeover_read_module(Takeover *takeover, const LedgerModule *record, uint32_t slot) {
        TakeoverModule *module;

        HASH_FIND(hh, takeover->modules, &record->id, sizeof(record->id), module);
        if (module) {
                module->record.has_variables |= record->has_variables;
                module->record.worker = MAX(module->record.worker, record->worker);
                ledger_drop(takeover->supervisor->engine.ledger, LEDGER_MODULE, slot);
                return 0;
        }
        module = calloc(1, sizeof(*module));
        if (!module)
                return -ENOMEM;

        module->id = record->id;
        module->record = *record;
        module->slot = slot;
        HASH_ADD(hh, takeover->modules, id, sizeof(module->id), module);
        if (module->hh.tbl)
                return 0;
        free(module);
        return -ENOMEM;
}

/* One that ended while there was a supervisor has no record: nobody waits for what was in it. */
static bool takeover_has_worker(const Takeover *takeover, uint32_t id) {
        const LedgerWorker *record;
        uint32_t slot = LEDGER_NONE;

        while ((record = ledger_next(takeover->supervisor->engine.ledger, LEDGER_WORKER, &slot)))
                if (record->id == id)
                        return true;
        return false;
}

/* Those that have ended are found by `after` and Wait as they were before. */
static int takeover_read_job(Takeover *takeover, const LedgerJob *job) {
        TakeoverSession *session = takeover_find_session(takeover, (uint32_t)(job->owner.id >> 32));
        User *user;
        int r;

        if (session) {
                session->last_tag = MAX(session->last_tag, (uint32_t)job->owner.id);
                session->n_sent += job->state == LEDGER_SENT &&
                                   takeover_has_worker(takeover, job->sent.worker);
        }
        if (job->state != LEDGER_ENDED)
                return 0;
        r = engine_get_user(&takeover->supervisor->engine, job->owner.uid, job->owner.gid, &user);
        if (r < 0)
                return r;
        history_add(user->history, &(HistoryEntry){
                                           .id = job->owner.id,
                                           .state = job->end.state,
                                           .code = job->end.code,
                                           .root = job->end.root,
                                           .device = job->end.device,
                                           .waited_us = job->end.waited_us,
                                           .ran_us = job->end.ran_us,
                                           .text = job->end.code ? (char *)job->text : NULL,
                                   });
        return 0;
}

int takeover_read(Takeover *takeover) {
        const Ledger *ledger = takeover->supervisor->engine.ledger;
        uint32_t slot = LEDGER_NONE;
        const void *record;
        LedgerJob job;
        size_t i = 0;
        int r = 0;

        while (r == 0 && (record = ledger_next(ledger, LEDGER_SESSION, &slot)))
                r = takeover_read_session(takeover, record, slot);
        slot = LEDGER_NONE;
        while (r == 0 && (record = ledger_next(ledger, LEDGER_MODULE, &slot)))
                r = takeover_read_module(takeover, record, slot);
        while (r == 0 && ledger_next_job(ledger, &i, &job))
                r = takeover_read_job(takeover, &job);
        return r;
}
