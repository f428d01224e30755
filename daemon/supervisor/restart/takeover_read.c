/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: reads the ledger once.
 */

#include "base.h"
#include "takeover_state.h"

static int takeover_read_session(Takeover *takeover, const LedgerSession *record, uint32_t slot) {
        int r;

        r = takeover_add_session(takeover, record, slot);
        if (r == -ESRCH) {
                ledger_drop(takeover->engine->ledger, LEDGER_SESSION, slot);
                return 0;
        }
        return r;
}

/* If the previous supervisor was killed while it changed a record, both versions exist; either
 * holds. */
static int takeover_read_module(Takeover *takeover, const LedgerModule *record, uint32_t slot) {
        TakeoverModule *module;

        HASH_FIND(hh, takeover->modules, &record->id, sizeof(record->id), module);
        if (module) {
                module->record.has_variables |= record->has_variables;
                module->record.is_used |= record->is_used;
                ledger_drop(takeover->engine->ledger, LEDGER_MODULE, slot);
                return 0;
        }
        if (!takeover_find_session(takeover, record->session)) {
                ledger_drop(takeover->engine->ledger, LEDGER_MODULE, slot);
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

static int takeover_read_end(Takeover *takeover, const LedgerJob *job) {
        User *user;
        int r;

        r = user_get(takeover->engine, job->owner.uid, job->owner.gid, &user);
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

/* `after` and Wait find ended jobs as before. Records of a dormant session's ends may not be reused
 * yet, because the client may still have to receive them. */
static int takeover_read_job(Takeover *takeover, const LedgerJob *job) {
        TakeoverSession *session = takeover_find_session(takeover, (uint32_t)(job->owner.id >> 32));
        Ledger *ledger = takeover->engine->ledger;

        if (session)
                session->last_tag = MAX(session->last_tag, (uint32_t)job->owner.id);
        if (job->state != LEDGER_ENDED) {
                if (!session)
                        ledger_job_dropped(ledger, job->slot);
                return 0;
        }
        if (session)
                ledger_job_told(ledger, job->slot, &session->told);
        return takeover_read_end(takeover, job);
}

int takeover_read(Takeover *takeover) {
        const Ledger *ledger = takeover->engine->ledger;
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
