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

void takeover_submitted(Job *job) {
        Takeover *takeover = supervisor_of(job->engine)->takeover;
        LedgerJob known;
        Worker *worker;

        if (!takeover || takeover->state != TAKEOVER_OVER)
                return;
        takeover_claim_job(takeover, job);
        if (!job->is_held || !ledger_find_job(job->engine->ledger, job->id, &known))
                return;
        worker = takeover_find_worker(takeover, known.sent.worker);
        if (worker)
                takeover_adopt_job(takeover, job, known.sent.worker);
}

/* Those of a session that is back late whose worker is gone: they wait until all were heard. */
static void takeover_settle_late(Takeover *takeover, Session *session) {
        Job *job, *next;

        TAILQ_FOREACH (job, &session->submitter.jobs, submitter_link)
                if (job->is_held)
                        job->was_overtaken = job_is_overtaken(job);
        TAILQ_FOREACH_SAFE (job, &session->submitter.jobs, submitter_link, next)
                if (job->is_held)
                        takeover_adopt_job(takeover, job, 0);
}

/* It has said all, or is gone. */
static void takeover_let_go(Takeover *takeover, Session *session, TakeoverSession *expected) {
        if (takeover->state == TAKEOVER_OVER) {
                takeover_settle_late(takeover, session);
                takeover_leave_session(takeover, expected);
        } else {
                takeover_forget_session(takeover, expected);
                takeover_check(takeover);
        }
}

void takeover_resumed(Session *session, uint32_t n_seen) {
        Takeover *takeover = session->clients->supervisor->takeover;
        TakeoverSession *expected = takeover_find_session(takeover, session->submitter.id);

        session->is_resuming = false;
        session->told.n_told = n_seen;
        takeover->has_news = true;
        if (!expected)
                return;
        session->last_tag = MAX(session->last_tag, expected->last_tag);
        takeover->n_resumed++;
        takeover_let_go(takeover, session, expected);
}

void takeover_session_closed(Session *session) {
        Takeover *takeover = session->clients->supervisor->takeover;
        TakeoverSession *expected;

        if (!session->is_resuming || !takeover)
                return;
        expected = takeover_find_session(takeover, session->submitter.id);
        if (expected)
                takeover_let_go(takeover, session, expected);
        takeover->has_news = true;
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
        spec->used_in = module->record.worker;
        takeover_forget_module(supervisor->takeover, module);
        return true;
}

bool takeover_find_job(const Session *session, uint64_t id, LedgerJob *ret_job) {
        return session->is_resuming && ledger_find_job(session->engine->ledger, id, ret_job);
}
