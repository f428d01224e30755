/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: clients that reconnect, and what they resubmit.
 */

#include <string.h>

#include "util/list.h"
#include "base.h"
#include "clients.h"
#include "takeover_state.h"

static bool takeover_is_ahead(const Takeover *takeover, const User *user, uint64_t id) {
        const TakeoverSession *session;

        if (!takeover_is_awaiting(takeover) || history_find(user->history, id))
                return false;
        session = takeover_find_session(takeover, (uint32_t)(id >> 32));
        return session && session->record.uid == user->uid;
}

static bool takeover_is_same(const TakeoverSession *session, const Peer *peer) {
        const LedgerSession *record = &session->record;

        if (record->uid != peer->uid || record->pid != peer->pid)
                return false;
        return !record->start || record->start == process_age_start(peer->pid);
}

static Failure *takeover_claim(Takeover *takeover, Session *session, uint32_t id) {
        TakeoverSession *expected = takeover ? takeover_find_session(takeover, id) : NULL;
        int r;

        if (!expected || expected->is_claimed)
                return failure_new(FAILURE_SHUTDOWN,
                                   "gpuqd was restarted, and session %u could not reconnect: "
                                   "connect and submit again",
                                   id);
        if (!takeover_is_same(expected, &session->peer))
                return failure_new(FAILURE_SHUTDOWN,
                                   "gpuqd was restarted, and session %u belongs to another process",
                                   id);
        r = session_rename(session, id);
        if (r < 0)
                return failure_new(FAILURE_SHUTDOWN,
                                   "gpuqd was restarted, and session %u could not reconnect: %s",
                                   id, strerror(-r));

        expected->is_claimed = true;
        takeover_wake_session(expected);
        session->record = expected->slot;
        session->is_resuming = true;
        takeover->has_news = true;
        return NULL;
}

/* It has resubmitted everything, or is gone. */
static void takeover_let_go(Takeover *takeover, Session *session) {
        TakeoverSession *expected;

        session->is_resuming = false;
        if (!takeover) /* the program ends */
                return;
        expected = takeover_find_session(takeover, session->submitter.id);
        submission_settle(&session->submitter);
        takeover_leave_session(takeover, expected);
}

static void takeover_resumed(Takeover *takeover, Session *session, uint32_t n_seen) {
        TakeoverSession *expected = takeover_find_session(takeover, session->submitter.id);

        session->ends.told.n_told = n_seen;
        session->last_tag = MAX(session->last_tag, expected->last_tag);
        takeover_let_go(takeover, session);
}

static bool takeover_claim_module(Takeover *takeover, const Session *session, uint64_t id,
                                  ModuleSpec *spec) {
        TakeoverModule *module;

        HASH_FIND(hh, takeover->modules, &id, sizeof(id), module);
        if (!module || module->record.session != session->submitter.id)
                return false;

        spec->id = id;
        spec->record = module->slot;
        spec->has_variables = module->record.has_variables;
        spec->is_used = module->record.is_used;
        takeover_forget_module(takeover, module);
        return true;
}

const ResumeOps takeover_resume_ops = {
        .serves = takeover_serves,
        .is_ahead = takeover_is_ahead,
        .claim = takeover_claim,
        .resumed = takeover_resumed,
        .closed = takeover_let_go,
        .claim_module = takeover_claim_module,
};
