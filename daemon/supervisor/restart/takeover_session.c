/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: clients who come back, and what they say again.
 */

#include <string.h>

#include "util/list.h"
#include "base.h"
#include "clients.h"
#include "loop.h"
#include "takeover_state.h"

bool takeover_is_ahead(const Supervisor *supervisor, const User *user, uint64_t id) {
        const TakeoverSession *session;

        if (!takeover_is_awaiting(supervisor) || history_find(user->history, id))
                return false;
        session = takeover_find_session(supervisor->takeover, (uint32_t)(id >> 32));
        return session && session->record.uid == user->uid;
}

static bool takeover_is_same(const TakeoverSession *session, const Peer *peer) {
        const LedgerSession *record = &session->record;

        if (record->uid != peer->uid || record->pid != peer->pid)
                return false;
        return !record->start || record->start == process_age_start(peer->pid);
}

Failure *takeover_claim(Session *session, uint32_t id) {
        Supervisor *supervisor = session->clients->supervisor;
        Takeover *takeover = supervisor->takeover;
        TakeoverSession *expected = takeover ? takeover_find_session(takeover, id) : NULL;
        int r;

        if (!expected || expected->is_claimed)
                return failure_new(FAILURE_SHUTDOWN,
                                   "gpuqd was restarted, and session %u could not be taken over: "
                                   "connect and submit again",
                                   id);
        if (!takeover_is_same(expected, &session->peer))
                return failure_new(FAILURE_SHUTDOWN,
                                   "gpuqd was restarted, and session %u was another process's", id);
        r = session_rename(session, id);
        if (r < 0)
                return failure_new(FAILURE_SHUTDOWN, "gpuqd was restarted: no session %u: %s", id,
                                   strerror(-r));

        expected->is_claimed = true;
        takeover_wake_session(expected);
        session->record = expected->slot;
        session->is_resuming = true;
        takeover->has_news = true;
        return NULL;
}

/* It has said all, or is gone. */
static void takeover_let_go(Session *session) {
        Takeover *takeover = session->clients->supervisor->takeover;
        TakeoverSession *expected = takeover_find_session(takeover, session->submitter.id);

        session->is_resuming = false;
        submitter_settle(&session->submitter);
        takeover_leave_session(takeover, expected);
}

void takeover_resumed(Session *session, uint32_t n_seen) {
        Takeover *takeover = session->clients->supervisor->takeover;
        TakeoverSession *expected = takeover_find_session(takeover, session->submitter.id);

        session->told.n_told = n_seen;
        session->last_tag = MAX(session->last_tag, expected->last_tag);
        takeover_let_go(session);
}

void takeover_session_closed(Session *session) {
        if (session->is_resuming)
                takeover_let_go(session);
}

bool takeover_claim_module(Session *session, uint64_t id, ModuleSpec *spec) {
        Supervisor *supervisor = session->clients->supervisor;
        TakeoverModule *module;

        HASH_FIND(hh, supervisor->takeover->modules, &id, sizeof(id), module);
        if (!module || module->record.session != session->submitter.id)
                return false;

        spec->id = id;
        spec->record = module->slot;
        spec->has_variables = module->record.has_variables;
        spec->is_used = module->record.is_used;
        takeover_forget_module(supervisor->takeover, module);
        return true;
}

bool takeover_find_job(const Session *session, uint64_t id, LedgerJob *ret_job) {
        return session->is_resuming && ledger_find_job(session->engine->ledger, id, ret_job);
}
