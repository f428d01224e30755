/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takeover: the window. See takeover.h.
 */

#include "takeover.h"

#include <string.h>

#include "jobs.h"
#include "base.h"
#include "util/list.h"
#include "clients.h"
#include "loop.h"
#include "takeover_state.h"
#include "workers.h"
#include "util/log.h"

static void takeover_on_timer(uv_timer_t *timer);

/* ---- life ------------------------------------------------------------------ */

int takeover_new(Supervisor *supervisor, Takeover **ret_takeover) {
        Takeover *takeover;
        int r;

        takeover = calloc(1, sizeof(*takeover));
        if (!takeover)
                return -ENOMEM;
        r = uv_timer_init(&supervisor->loop, &takeover->timer);
        if (r < 0) {
                free(takeover);
                return r;
        }

        takeover->supervisor = supervisor;
        takeover->timer.data = takeover;
        *ret_takeover = takeover;
        return 0;
}

static void takeover_on_close(uv_handle_t *handle) {
        free(handle->data);
}

TakeoverSession *takeover_find_session(const Takeover *takeover, uint32_t id) {
        TakeoverSession *session;

        HASH_FIND(hh, takeover->sessions, &id, sizeof(id), session);
        return session;
}

void takeover_forget_session(Takeover *takeover, TakeoverSession *session) {
        takeover_wake_session(session);
        ledger_told_close(takeover->supervisor->engine.ledger, &session->told);
        HASH_DEL(takeover->sessions, session);
        free(session);
}

void takeover_forget_module(Takeover *takeover, TakeoverModule *module) {
        HASH_DEL(takeover->modules, module);
        free(module);
}

/* What it holds itself; the ledger stays as it is. */
static void takeover_drop_all(Takeover *takeover) {
        while (takeover->sessions)
                takeover_forget_session(takeover, takeover->sessions);
        while (takeover->modules)
                takeover_forget_module(takeover, takeover->modules);
        while (takeover->jobs)
                takeover_forget_job(takeover, takeover->jobs);
        takeover_drop_held(takeover);
}

Takeover *takeover_free(Takeover *takeover) {
        if (!takeover)
                return NULL;

        takeover_drop_all(takeover);
        uv_close((uv_handle_t *)&takeover->timer, takeover_on_close);
        return NULL;
}

/* ---- the window ------------------------------------------------------------ */

bool takeover_is_open(const Supervisor *supervisor) {
        const Takeover *takeover = supervisor->takeover;

        return takeover &&
               (takeover->state == TAKEOVER_LOOKING || takeover->state == TAKEOVER_OPEN);
}

bool takeover_is_awaiting(const Supervisor *supervisor) {
        const Takeover *takeover = supervisor->takeover;

        return takeover_is_open(supervisor) ||
               (takeover && takeover->sessions && uv_hrtime() < takeover->until_ns);
}

bool takeover_serves(const Supervisor *supervisor) {
        const Takeover *takeover = supervisor->takeover;

        return !takeover || takeover->state >= TAKEOVER_OPEN;
}

bool takeover_lets_in(const Supervisor *supervisor) {
        return takeover_serves(supervisor) || supervisor->takeover->is_late;
}

bool takeover_has_news(Supervisor *supervisor) {
        bool has_news = supervisor->takeover->has_news;

        supervisor->takeover->has_news = false;
        return has_news;
}

static void takeover_enter(Takeover *takeover, TakeoverState state) {
        takeover->state = state;
        engine_pause(&takeover->supervisor->engine, ENGINE_TAKING_OVER);
        takeover->brief_ns = uv_hrtime() + TAKEOVER_BRIEF_MS * 1000000ull;
        takeover->until_ns = uv_hrtime() + takeover->supervisor->config->takeover_s * 1000000000ull;
}

/* A new ledger, for when there is none or the one there is cannot be used. Supervisors before
 * us are unknown then, and with them all that the keeper held for them. */
static int takeover_begin_afresh(Takeover *takeover) {
        takeover_drop_held(takeover);
        takeover->state = TAKEOVER_OVER;
        engine_unpause(&takeover->supervisor->engine, ENGINE_TAKING_OVER);
        keeper_link_keep(takeover->supervisor->engine.keeper, KEEPER_KEY_LEDGER,
                         ledger_fd(takeover->supervisor->engine.ledger));
        supervisor_listen(takeover->supervisor);
        return 0;
}

static void takeover_adopt_ledger(Takeover *takeover, Ledger *ledger) {
        Supervisor *supervisor = takeover->supervisor;

        ledger_free(supervisor->engine.ledger);
        supervisor->engine.ledger = ledger;
        supervisor->clients.last_session = (uint32_t)ledger_last_id(ledger, LEDGER_SESSION);
        supervisor->engine.last_arena = ledger_last_id(ledger, LEDGER_ARENA);
        supervisor->engine.last_module = ledger_last_id(ledger, LEDGER_MODULE);
        supervisor->last_worker = (uint32_t)ledger_last_id(ledger, LEDGER_WORKER);
}

/* Return: NULL: it is ours now. Else why it is not. */
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
                log_error("the ledger of the supervisor before is %s: it is set aside, its workers "
                          "end, and its clients have to connect and submit again",
                          problem);
                return takeover_begin_afresh(takeover);
        }

        r = takeover_read(takeover);
        if (r < 0)
                return r;
        takeover_want_workers(takeover);
        takeover->n_expected = HASH_COUNT(takeover->sessions);
        takeover_enter(takeover, TAKEOVER_LOOKING);
        uv_timer_start(&takeover->timer, takeover_on_timer, TAKEOVER_TICK_MS, TAKEOVER_TICK_MS);
        return 0;
}

void takeover_on_devices(Takeover *takeover) {
        if (takeover->state != TAKEOVER_LOOKING)
                return;
        takeover_restore(takeover);
        takeover_enter(takeover, TAKEOVER_OPEN);
        takeover->has_news = true; /* for those who were let in before */
        supervisor_listen(takeover->supervisor);
        takeover_check(takeover);
}

/* ---- its end --------------------------------------------------------------- */

Worker *takeover_find_worker(const Takeover *takeover, uint32_t id) {
        Worker *worker;

        HASH_FIND(hh, takeover->supervisor->workers, &id, sizeof(id), worker);
        return worker && worker->state != WORKER_LOST ? worker : NULL;
}

void takeover_adopt_job(Takeover *takeover, Job *job, uint32_t worker_id) {
        Worker *worker = takeover_find_worker(takeover, worker_id);
        Failure *doom;

        job->is_held = false;
        if (worker && worker_adopt(worker, job) >= 0) {
                job->was_overtaken = false; /* it is asked again when that worker ends */
                takeover->n_running++; /* one that is doomed is stopped when its worker is ready */
                return;
        }

        doom = TAKE_PTR(job->doom);
        if (doom)
                ending_doom(job, job->doom_state, doom);
        else
                recovery_run_unattached(job);
}

/* Before the first of them goes its way. */
static void takeover_find_overtaken(const Supervisor *supervisor) {
        Job *job;

        for (job = supervisor->engine.jobs; job; job = job->hh.next)
                job->was_overtaken = job->is_held && job_is_overtaken(job);
}

/* Who is not back may name it yet. */
static void takeover_settle_unclaimed(Takeover *takeover, const LedgerJob *known) {
        if (takeover_find_session(takeover, (uint32_t)(known->owner.id >> 32)))
                takeover_keep_job(takeover, known);
        else
                ledger_job_dropped(takeover->supervisor->engine.ledger, known->slot);
}

/* Others will soon have ends of their own: it may not make room for those yet. One that its
 * session submitted again already is to be told. */
static void takeover_keep_end(Takeover *takeover, const LedgerJob *known) {
        TakeoverSession *session =
                takeover_find_session(takeover, (uint32_t)(known->owner.id >> 32));

        if (session)
                ledger_job_told(takeover->supervisor->engine.ledger, known->slot, &session->told);
}

static void takeover_settle_jobs(Takeover *takeover) {
        Supervisor *supervisor = takeover->supervisor;
        LedgerJob known;
        size_t i = 0;
        Job *job;

        takeover_find_overtaken(supervisor);
        while (ledger_next_job(supervisor->engine.ledger, &i, &known)) {
                if (known.state == LEDGER_ENDED) {
                        takeover_keep_end(takeover, &known);
                        continue;
                }
                job = engine_find_job(&supervisor->engine, known.owner.id);
                if (job && job->is_held)
                        takeover_adopt_job(takeover, job, known.sent.worker);
                else if (!job || job->record != known.slot)
                        takeover_settle_unclaimed(takeover, &known);
        }
}

static void takeover_resume_workers(Supervisor *supervisor) {
        Worker *worker, *next;

        HASH_ITER (hh, supervisor->workers, worker, next)
                if (worker->state == WORKER_HELD)
                        worker_resume(worker);
}

/* Who did not come. */
static void takeover_settle_session(Takeover *takeover, TakeoverSession *session) {
        int r;

        if (session->is_claimed)
                return;
        r = takeover_sleep_session(takeover, session);
        if (r >= 0) {
                log_info("session %u of uid %u did not come back yet: it is kept as long as "
                         "process %d lives",
                         session->id, session->record.uid, session->record.pid);
                return;
        }
        log_notice("session %u of uid %u did not come back: its jobs are cancelled: %s",
                   session->id, session->record.uid, strerror(-r));
        ledger_drop(takeover->supervisor->engine.ledger, LEDGER_SESSION, session->slot);
        takeover_forget_session(takeover, session);
}

static void takeover_settle_sessions(Takeover *takeover) {
        TakeoverSession *session, *next;

        HASH_ITER (hh, takeover->sessions, session, next)
                takeover_settle_session(takeover, session);
}

/* Until then others may yet have to wait for jobs of those who are not back. */
static void takeover_stop_timer(Takeover *takeover) {
        if (!takeover->sessions || uv_hrtime() >= takeover->until_ns)
                uv_timer_stop(&takeover->timer);
}

static void takeover_end(Takeover *takeover) {
        Supervisor *supervisor = takeover->supervisor;
        Slot *slot, *next;

        takeover_stop_timer(takeover);
        takeover_settle_sessions(takeover);
        takeover_settle_jobs(takeover);
        takeover_prune(takeover);
        takeover_drop_fds(takeover);
        takeover->state = TAKEOVER_OVER;
        engine_unpause(&takeover->supervisor->engine, ENGINE_TAKING_OVER);
        takeover->has_news = true;
        supervisor->engine.is_stirred = true;
        log_notice("took over after %.3f s: %u of %u sessions, %u workers, %u jobs in them",
                   (double)(uv_hrtime() - takeover->began_ns) / 1e9, takeover->n_resumed,
                   takeover->n_expected, takeover->n_workers, takeover->n_running);
        takeover_resume_workers(supervisor);
        HASH_ITER (hh, supervisor->engine.slots, slot, next) {
                slot_poke(slot);
                slot_wake(slot);
        }
}

/* Who has a job in a worker is there as soon as it can, and so is who has begun to say again. */
static bool takeover_is_waited_for(const Takeover *takeover, const TakeoverSession *session) {
        return session->is_claimed || session->n_sent || uv_hrtime() < takeover->brief_ns;
}

void takeover_check(Takeover *takeover) {
        const TakeoverSession *session;

        if (takeover->state != TAKEOVER_OPEN)
                return;
        for (session = takeover->sessions; session; session = session->hh.next)
                if (takeover_is_waited_for(takeover, session))
                        return;
        takeover_end(takeover);
}

static void takeover_look_for_the_dead(Takeover *takeover) {
        TakeoverSession *session, *next;

        HASH_ITER (hh, takeover->sessions, session, next) {
                if (session->is_claimed || !session->record.pid ||
                    process_age_is_alive(session->record.pid, session->record.start))
                        continue;
                ledger_drop(takeover->supervisor->engine.ledger, LEDGER_SESSION, session->slot);
                takeover_forget_session(takeover, session);
                takeover->has_news = true;
        }
}

static void takeover_look_for_the_time(Takeover *takeover) {
        uint64_t late_ns = takeover->began_ns + TAKEOVER_LATE_MS * 1000000ull;

        if (takeover->state != TAKEOVER_LOOKING || takeover->is_late || uv_hrtime() < late_ns)
                return;
        log_warning("the driver has not shown its devices for %u s: clients are let in, and wait "
                    "for it",
                    TAKEOVER_LATE_MS / 1000);
        takeover->is_late = true;
        supervisor_listen(takeover->supervisor);
}

static void takeover_on_timer(uv_timer_t *timer) {
        Takeover *takeover = timer->data;

        if (takeover->state == TAKEOVER_OVER) {
                takeover_stop_timer(takeover);
                return;
        }
        takeover_look_for_the_dead(takeover);
        takeover_look_for_the_time(takeover);
        if (uv_hrtime() < takeover->until_ns)
                takeover_check(takeover);
        else if (takeover->state == TAKEOVER_OPEN)
                takeover_end(takeover);
        else if (takeover->supervisor->engine.problem) /* no device: what needs none goes on */
                takeover_on_devices(takeover);
}
