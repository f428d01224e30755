/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: sessions that did not come back while the window was open, though their
 * processes live. A library without a thread comes back with its program's next call,
 * which may be hours away. Until then its arenas stay, and what its modules have in a
 * worker; its jobs go on there, and how they end is written down. Nobody waits for it.
 *
 * It is over when the client is back, or with the process, which the kernel tells.
 */

#include <errno.h>

#include "jobs.h"
#include "base.h"
#include "loop.h"
#include "takeover_state.h"
#include "workers.h"
#include "util/log.h"

/* ---- processes ------------------------------------------------------------- */

static void takeover_on_death(void *userdata) {
        TakeoverSession *session = userdata;
        Takeover *takeover = session->takeover;

        log_info("session %u ends with its process, which did not come back", session->id);
        ledger_drop(takeover->supervisor->engine.ledger, LEDGER_SESSION, session->slot);
        takeover_leave_session(takeover, session);
        takeover->has_news = true;
}

/* ---- sessions -------------------------------------------------------------- */

int takeover_sleep_session(Takeover *takeover, TakeoverSession *session) {
        const LedgerSession *record = &session->record;
        User *user;
        int r;

        if (!record->pid)
                return -ESRCH; /* nobody would tell of its end */
        r = engine_get_user(&takeover->supervisor->engine, record->uid, record->gid, &user);
        if (r >= 0)
                r = process_watch_pid(&takeover->supervisor->loop, record->pid, record->start,
                                      takeover_on_death, session, &session->watch);
        if (r < 0)
                return r;

        session->takeover = takeover;
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

/* It may end by itself for a while. */
static void takeover_abandon_job(Takeover *takeover, TakeoverJob *job) {
        Supervisor *supervisor = takeover->supervisor;
        Worker *worker;

        worker = takeover_worker_of(supervisor, job);
        if (worker)
                worker->orphans_ns = engine_now(&supervisor->engine);
        ledger_job_dropped(supervisor->engine.ledger, job->slot);
        takeover_forget_job(takeover, job);
}

void takeover_leave_session(Takeover *takeover, TakeoverSession *session) {
        uint32_t id = session->id;
        TakeoverJob *job, *next;

        HASH_ITER (hh, takeover->jobs, job, next)
                if ((uint32_t)(job->id >> 32) == id)
                        takeover_abandon_job(takeover, job);
        takeover_forget_session(takeover, session);
        takeover_prune(takeover);
}

/* ---- what is kept for them ------------------------------------------------- */

static bool takeover_expects_user(const Takeover *takeover, const User *user) {
        const TakeoverSession *session;

        for (session = takeover->sessions; session; session = session->hh.next)
                if (session->record.uid == user->uid)
                        return true;
        return false;
}

static bool takeover_wants_arena(const Takeover *takeover, const Arena *arena) {
        if (arena->session == LEDGER_SHARED)
                return takeover_expects_user(takeover, arena->user);
        return takeover_find_session(takeover, arena->session) != NULL;
}

static void takeover_prune_arenas(Takeover *takeover) {
        size_t n_kept = 0;

        for (size_t i = 0; i < takeover->n_arenas; ++i) {
                Arena *arena = takeover->arenas[i];

                if (takeover_wants_arena(takeover, arena))
                        takeover->arenas[n_kept++] = arena;
                else
                        arena_unref(arena);
        }
        takeover->n_arenas = n_kept;
}

/* A worker may still have it; to one that has not it says nothing. */
static void takeover_unload(const Supervisor *supervisor, uint64_t id) {
        Worker *worker, *next;

        HASH_ITER (hh, supervisor->workers, worker, next)
                if (worker->is_inherited && worker_is_open(worker) &&
                    outbox_push_id(&worker->outbox, OUTBOX_MODULE_DROP, id) < 0)
                        worker_kill(worker);
}

void takeover_prune(Takeover *takeover) {
        Supervisor *supervisor = takeover->supervisor;
        TakeoverModule *module, *next;

        HASH_ITER (hh, takeover->modules, module, next)
                if (!takeover_find_session(takeover, module->record.session)) {
                        ledger_drop(supervisor->engine.ledger, LEDGER_MODULE, module->slot);
                        if (takeover->state == TAKEOVER_OVER)
                                takeover_unload(supervisor, module->id);
                        takeover_forget_module(takeover, module);
                }
        takeover_prune_arenas(takeover);
}

bool takeover_knows_module(const Supervisor *supervisor, uint64_t id) {
        TakeoverModule *module;

        HASH_FIND(hh, supervisor->takeover->modules, &id, sizeof(id), module);
        return module != NULL;
}

bool takeover_needs_worker(const Worker *worker) {
        const TakeoverModule *module;

        for (module = worker->supervisor->takeover->modules; module; module = module->hh.next)
                if (module->record.has_variables && module->record.worker == worker->id)
                        return true;
        return takeover_n_jobs(worker) > 0;
}

/* ---- their jobs ------------------------------------------------------------ */

const TakeoverJob *takeover_first_job(const Supervisor *supervisor) {
        return supervisor->takeover ? supervisor->takeover->jobs : NULL;
}

size_t takeover_count_jobs(const Supervisor *supervisor) {
        return supervisor->takeover ? HASH_COUNT(supervisor->takeover->jobs) : 0;
}

TakeoverJob *takeover_find_kept(const Supervisor *supervisor, uint64_t id) {
        TakeoverJob *job = NULL;

        if (supervisor->takeover)
                HASH_FIND(hh, supervisor->takeover->jobs, &id, sizeof(id), job);
        return job;
}

static TakeoverJob *takeover_find_in(const Worker *worker, uint64_t id) {
        TakeoverJob *job = takeover_find_kept(worker->supervisor, id);

        return job && job->sent.worker == worker->id ? job : NULL;
}

Worker *takeover_worker_of(const Supervisor *supervisor, const TakeoverJob *job) {
        return takeover_find_worker(supervisor->takeover, job->sent.worker);
}

/* Which of its modules it uses is not known: their variables may all be changed. */
static void takeover_note_variables(Takeover *takeover, const TakeoverJob *job) {
        TakeoverModule *module;

        if (!job->sent.worker)
                return;
        for (module = takeover->modules; module; module = module->hh.next)
                if (module->record.session == (uint32_t)(job->id >> 32) &&
                    module->record.has_variables && !module->record.worker) {
                        module->record.worker = job->sent.worker;
                        module->slot = ledger_change(takeover->supervisor->engine.ledger,
                                                     LEDGER_MODULE, module->slot, &module->record);
                }
}

void takeover_keep_job(Takeover *takeover, const LedgerJob *known) {
        const LedgerOwner *owner = &known->owner;
        TakeoverJob *job = calloc(1, sizeof(*job));
        User *user;

        if (job &&
            engine_get_user(&takeover->supervisor->engine, owner->uid, owner->gid, &user) >= 0) {
                *job = (TakeoverJob){.id = owner->id,
                                     .owner = *owner,
                                     .user = user,
                                     .sent = known->sent,
                                     .slot = known->slot};
                HASH_ADD(hh, takeover->jobs, id, sizeof(job->id), job);
                if (job->hh.tbl) {
                        takeover_note_variables(takeover, job);
                        return;
                }
        }
        free(job); /* its record stays: what it says is found, if not what becomes of it */
}

void takeover_forget_job(Takeover *takeover, TakeoverJob *job) {
        HASH_DEL(takeover->jobs, job);
        failure_free(job->doom);
        free(job);
}

void takeover_claim_job(Takeover *takeover, Job *job) {
        TakeoverJob *kept = takeover_find_kept(takeover->supervisor, job->id);

        if (!kept)
                return;
        job->doom_state = kept->doom_state;
        job->doom = TAKE_PTR(kept->doom);
        takeover_forget_job(takeover, kept);
}

unsigned takeover_n_jobs(const Worker *worker) {
        const TakeoverJob *job;
        unsigned n = 0;

        for (job = worker->supervisor->takeover->jobs; job; job = job->hh.next)
                n += job->sent.worker == worker->id;
        return n;
}

/* Written down for when its client is back, and for those that come after it. */
static void takeover_write_end(Takeover *takeover, TakeoverJob *job, const LedgerEnd *end,
                               const char *text, const char *output) {
        TakeoverSession *session = takeover_find_session(takeover, (uint32_t)(job->id >> 32));
        Ledger *ledger = takeover->supervisor->engine.ledger;
        HistoryEntry entry = {
                .id = job->id,
                .state = end->state,
                .code = end->code,
                .root = end->root,
                .device = end->device,
                .ran_us = end->ran_us,
                .text = (char *)text,
        };

        (void)ledger_job_ended(ledger, job->slot, &job->owner, end, text, output);
        ledger_job_told(ledger, job->slot, &session->told);
        history_add(job->user->history, &entry);
        takeover_forget_job(takeover, job);
}

void takeover_job_ended(Worker *worker, const Gpuq__Worker__JobEnd *said) {
        _cleanup_(failure_freep) Failure *failure = failure_from_proto(said->error);
        TakeoverJob *job = takeover_find_in(worker, said->id);
        LedgerEnd end = {
                .state = failure ? JOB_FAILED : JOB_DONE,
                .code = failure ? failure->code : 0,
                .root = failure ? failure->root : 0,
                .device = worker->device->index,
                .ran_us = said->ran_us,
                .gpu_ns = said->gpu_ns,
        };

        if (job)
                takeover_write_end(worker->supervisor->takeover, job, &end,
                                   failure ? failure->text : NULL,
                                   *said->output ? said->output : NULL);
}

/* ---- those that have to end ------------------------------------------------ */

/* In @worker, or in none any more. */
static void takeover_end_doomed(Takeover *takeover, TakeoverJob *job, const Worker *worker) {
        LedgerEnd end = {
                .state = (int32_t)job->doom_state,
                .code = job->doom->code,
                .root = job->doom->root,
                .device = worker ? worker->device->index : 0,
        };

        takeover_write_end(takeover, job, &end, job->doom->text, NULL);
}

void takeover_doom_job(Supervisor *supervisor, TakeoverJob *job, JobState state, Failure *failure) {
        Worker *worker = takeover_worker_of(supervisor, job);

        if (job->doom) {
                failure_free(failure);
                return;
        }
        job->doom = failure;
        job->doom_state = state;
        if (worker)
                worker_stop_soon(worker);
        else
                takeover_end_doomed(supervisor->takeover, job, NULL);
}

bool takeover_has_doomed(const Worker *worker) {
        const TakeoverJob *job;

        for (job = takeover_first_job(worker->supervisor); job; job = job->hh.next)
                if (job->doom && job->sent.worker == worker->id)
                        return true;
        return false;
}

void takeover_worker_lost(Worker *worker) {
        Takeover *takeover = worker->supervisor->takeover;
        TakeoverJob *job, *next;

        if (!takeover)
                return;
        HASH_ITER (hh, takeover->jobs, job, next)
                if (job->doom && job->sent.worker == worker->id)
                        takeover_end_doomed(takeover, job, worker);
}

void takeover_job_late(Worker *worker, uint64_t id) {
        TakeoverJob *job = takeover_find_in(worker, id);

        if (!job || job->doom)
                return;
        takeover_doom_job(worker->supervisor, job, JOB_FAILED,
                          failure_new(FAILURE_TIMEOUT, "it ran longer than its timeout"));
        worker_stop(worker);
}

/* ---- what its worker has of them ------------------------------------------- */

static bool takeover_is_listed(const Gpuq__Worker__State *state, uint64_t id) {
        for (size_t i = 0; i < state->n_jobs; ++i)
                if (state->jobs[i] == id)
                        return true;
        return false;
}

void takeover_compare_jobs(Worker *worker, const Gpuq__Worker__State *state) {
        Takeover *takeover = worker->supervisor->takeover;
        TakeoverJob *job, *next;

        HASH_ITER (hh, takeover->jobs, job, next) {
                if (job->sent.worker != worker->id || takeover_is_listed(state, job->id))
                        continue;
                if (job->doom) {
                        takeover_end_doomed(takeover, job, NULL);
                } else {
                        ledger_job_dropped(worker->supervisor->engine.ledger, job->slot);
                        takeover_forget_job(takeover, job);
                }
        }
}
