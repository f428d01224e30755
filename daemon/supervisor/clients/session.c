/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "accounting_ops.h"
#include "detached_ops.h"
#include "jobs.h"
#include "registry.h"
#include "slurm_jobs.h"
#include "util/list.h"
#include "util/log.h"

#define SESSION_CONNECT_STEPS 32u  /* what a connection costs its user's part of a turn */
#define SESSION_CLOSE_STEPS   192u /* and its end */

static void session_on_close(uv_handle_t *handle);

Session *session_find(const Clients *clients, uint32_t id) {
        Session *session;

        HASH_FIND(hh, clients->sessions, &id, sizeof(id), session);
        return session;
}

/* Ids are reused after 2^32 sessions. */
uint32_t session_next_id(Clients *clients) {
        uint32_t id;

        do {
                id = ++clients->last_session;
                ledger_note_id(clients->engine->ledger, LEDGER_SESSION, id);
        } while (id == 0 || session_find(clients, id));
        return id;
}

/* ---- begin ----------------------------------------------------------------- */

/* Without memory a report does not count it. */
static void session_join_slurm_job(Session *session) {
        uint32_t number = session->submitter.slurm_job;

        if (number)
                session->peer.slurm_job = slurm_jobs_join(&session->clients->slurm_jobs, number,
                                                          session->submitter.user,
                                                          session->engine->config->slurm_dir);
}

/* Return: NULL: the session is admitted. */
static Failure *session_enter(Session *session) {
        User *user;
        int r;

        r = user_get(session->engine, session->peer.uid, session->peer.gid, &user);
        if (r < 0)
                return failure_new(FAILURE_INTERNAL, "cannot look up your user: %s", strerror(-r));
        if (!retire_make_room(session->engine, user, engine_now(session->engine)))
                return failure_new(FAILURE_QUOTA,
                                   "%u other subordinate uids of this uid's owner use gpuqd now, "
                                   "which is the limit; end their connections and workers first",
                                   USER_PARTS_MAX);
        r = user_charge(user, &session->charge, USER_SESSIONS, 1);
        if (r == USER_E_QUOTA)
                return user_quota_failure(user, USER_SESSIONS, 1);
        r = serving_join(&session->clients->serving, &session->serving, user->person->uid);
        if (r == 0)
                r = submitter_init(&session->submitter, session->engine, user,
                                   session->submitter.id, &session_submitter_ops);
        if (r < 0)
                return failure_new(FAILURE_INTERNAL, "cannot create a session: %s", strerror(-r));

        session->serving.joined_ns = engine_now(session->engine);
        serving_pay(&session->serving, SESSION_CONNECT_STEPS);
        user->n_sessions++;
        LIST_INSERT_HEAD(&user->sessions, session, user_link);
        session_join_slurm_job(session);
        return NULL;
}

static int session_alloc(Clients *clients, const Peer *peer, Session **ret_session) {
        Session *session;

        session = calloc(1, sizeof(*session));
        if (!session)
                return -ENOMEM;

        session->clients = clients;
        session->engine = clients->engine;
        session->peer = *peer;
        session->submitter.program = session->client;
        session->submitter.pid = (int32_t)peer->pid;
        session->record = LEDGER_NONE;
        session->flush.position = clients->kept_at;
        ledger_told_init(&session->ends.told);
        TAILQ_INIT(&session->ends.list);
        LIST_INIT(&session->watches.list);
        LIST_INIT(&session->asks.list);
        TAILQ_INIT(&session->reports.asks);
        TAILQ_INIT(&session->reports.listings);
        *ret_session = session;
        return 0;
}

/*
 * A forked child may hold its socket open. Once the client's process has exited, the session treats
 * the socket as closed; data sent before is still read.
 */
static void session_on_exit(void *userdata) {
        Session *session = userdata;

        session->process = process_watch_free(session->process);
        session->is_abandoned = true;
        shutdown(wire_fd(session->wire), SHUT_RDWR);
        session_flush_later(session);
}

/* Return: 0, or a negative errno. */
static int session_watch_process(Session *session, int fd) {
        int r;

        r = process_watch_peer(session->engine->loop, fd, session->peer.pid, session_on_exit,
                               session, &session->process);
        if (r == 0)
                session->submitter.slurm_job =
                        slurm_job_of(session->peer.pid, (uint32_t)session->peer.uid);
        if (r == 0 && process_watch_has_exited(session->process))
                session->submitter.slurm_job = 0; /* another process may have its number now */
        if (r == -ESRCH)
                shutdown(fd, SHUT_RDWR);
        return r == -ESRCH || r == -ENODATA ? 0 : r;
}

/* The session owns the descriptor only on success. */
static int session_start(Session *session, int fd) {
        Clients *clients = session->clients;
        int r;

        session->submitter.id = session_next_id(clients);
        HASH_ADD(hh, clients->sessions, submitter.id, sizeof(session->submitter.id), session);
        if (!session->hh.tbl)
                return -ENOMEM;
        r = session_watch_process(session, fd);
        if (r == 0)
                r = wire_new(fd, false, &session->wire);
        if (r < 0) {
                session->process = process_watch_free(session->process);
                HASH_DEL(clients->sessions, session);
        }
        return r;
}

/* Nobody is charged for it, so little is kept for it. */
static void session_refuse_entry(Session *session, Failure *failure) {
        session->process = process_watch_free(session->process);
        session->clients->n_refused++;
        session_refuse(session, failure);
}

int session_new(Clients *clients, int fd, const Peer *peer, Failure *refusal) {
        _cleanup_(failure_freep) Failure *owned = refusal;
        Session *session;
        int r;

        r = session_alloc(clients, peer, &session);
        if (r < 0)
                return r;
        r = uv_poll_init(clients->engine->loop, &session->poll, fd);
        if (r < 0) {
                free(session);
                return r;
        }
        session->poll.data = session;
        r = session_start(session, fd);
        if (r < 0) {
                session->state = SESSION_DEAD;
                uv_close((uv_handle_t *)&session->poll, session_on_close);
                return r;
        }

        if (!owned)
                owned = session_enter(session);
        if (owned)
                session_refuse_entry(session, TAKE_PTR(owned));
        session_flush_later(session);
        return 0;
}

int session_rename(Session *session, uint32_t id) {
        Clients *clients = session->clients;
        uint32_t before = session->submitter.id;

        HASH_DEL(clients->sessions, session);
        session->submitter.id = id;
        HASH_ADD(hh, clients->sessions, submitter.id, sizeof(session->submitter.id), session);
        if (session->hh.tbl)
                return 0;
        session->submitter.id = before;
        HASH_ADD(hh, clients->sessions, submitter.id, sizeof(session->submitter.id), session);
        return -ENOMEM;
}

/* ---- end ------------------------------------------------------------------- */

static void session_on_close(uv_handle_t *handle) {
        Session *session = handle->data;

        wire_free(session->wire);
        free(session);
}

static void session_drop_ended(Session *session) {
        Job *job;

        while ((job = TAILQ_FIRST(&session->ends.list))) {
                TAILQ_REMOVE(&session->ends.list, job, link);
                session->ends.n--;
                ledger_job_forgone(session->engine->ledger, job->record);
                job_free(job);
        }
}

static void session_free_watch(SessionWatch *watch) {
        LIST_REMOVE(watch, link);
        watch->session->watches.n--;
        user_uncharge(&watch->charge);
        free(watch);
}

static void session_drop_watches(Session *session) {
        SessionWatch *watch;

        while ((watch = LIST_FIRST(&session->watches.list))) {
                job_unwatch(&watch->watch);
                session_free_watch(watch);
        }
}

static void session_drop_prepared(Session *session) {
        while (session->prepared)
                session_unprepare(session, session->prepared->id);
}

static void session_drop_deferred(Session *session) {
        if (!session->deferred.data)
                return;
        if (!session->deferred.is_due)
                TAILQ_REMOVE(&session->clients->deferring, session, deferred.link);
        free(session->deferred.data);
        session->deferred.data = NULL;
        session->deferred.is_due = false;
}

static void session_leave(Session *session) {
        Ledger *ledger = session->engine->ledger;

        ledger_told_close(ledger, &session->ends.told);
        ledger_drop(ledger, LEDGER_SESSION, session->record);
        if (session_is_refused(session)) {
                session->clients->n_refused--;
                return;
        }

        session->peer.slurm_job =
                slurm_jobs_leave(&session->clients->slurm_jobs, session->peer.slurm_job);
        LIST_REMOVE(session, user_link);
        session->submitter.user->n_sessions--;
}

/* Its last jobs are cancelled. */
static void session_on_closed(Submitter *submitter) {
        Session *session = session_of(submitter);

        submitter_fini(submitter);
        uv_close((uv_handle_t *)&session->poll, session_on_close);
}

void session_close(Session *session) {
        bool is_closed;

        if (session->state == SESSION_DEAD)
                return;
        if (lending_close_later(session)) {
                session->state = SESSION_CLOSING;
                session_unqueue(session);
                (void)uv_poll_stop(&session->poll);
                return;
        }

        session_begin(session, ACTIVITY_CLOSE);
        session->state = SESSION_DEAD;
        if (session->is_resuming)
                session->clients->resume_ops->closed(session->clients->takeover, session);
        session->engine->has_new_work = true;
        session_unqueue(session);
        if (session->ring.is_polled)
                TAILQ_REMOVE(&session->clients->polled, session, ring.link);
        if (session->hh.tbl) /* NULL after session_rename() ran out of memory */
                HASH_DEL(session->clients->sessions, session);
        session_drop_deferred(session);
        session_drop_cancel(session);
        session_drop_reports(session);
        serving_pay(&session->serving, SESSION_CLOSE_STEPS);
        serving_leave(&session->clients->serving, &session->serving);
        is_closed = submission_close(&session->submitter);
        session_drop_ended(session);
        session_drop_watches(session);
        session->clients->detached_ops->forget(session);
        session->clients->accounting_ops->forget(session->clients->accounting, session);
        lending_free(session);
        session_drop_arenas(session);
        session_drop_prepared(session);
        session_leave(session);
        session->transit = transit_end(session->transit, &session->charge);
        user_uncharge(&session->charge);
        user_uncharge(&session->buffered);
        user_uncharge(&session->ring.charge);
        session->process = process_watch_free(session->process);
        (void)uv_poll_stop(&session->poll);
        if (is_closed)
                session_on_closed(&session->submitter);
}

void session_refuse(Session *session, Failure *failure) {
        if (session->state < SESSION_CLOSING) {
                (void)lending_fetch(session);
                session_reply_failure(session, 0, failure);
                session_drop_deferred(session);
                session->state = SESSION_CLOSING;
                session->closing_ns = uv_hrtime();
                session_flush_later(session);
        }
        failure_free(failure);
}

static void session_refuse_silent(Session *session) {
        session_refuse(session,
                       failure_new(FAILURE_PROTOCOL,
                                   "the client did not send its hello within %u s of connecting",
                                   session->engine->config->hello_timeout_s));
}

/* It ends not before its last messages are sent: a turn with much to read may take longer. */
void session_tick(Session *session, uint64_t now_ns) {
        uint64_t hello_ns = session->engine->config->hello_timeout_s * 1000000000ull;

        if (session->state == SESSION_HELLO && !session->serving.is_waiting &&
            now_ns - session->serving.joined_ns > hello_ns)
                session_refuse_silent(session);
        if (session->state == SESSION_CLOSING && !session->flush.is_queued &&
            now_ns - session->closing_ns > SESSION_LINGER_MS * 1000000ull)
                session_close(session);
        else if (wire_is_refused(session->wire))
                session_flush_later(session);
}

/* ---- modules, jobs --------------------------------------------------------- */

static void session_on_module_ready(Submitter *submitter, const Module *module,
                                    Gpuq__V1__ModuleReady *report) {
        Session *session = session_of(submitter);
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;

        reply.serial = module->serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_MODULE;
        reply.module = report;
        session_reply(session, &reply, -1);
}

static void session_on_module_failed(Submitter *submitter, const Module *module,
                                     const Failure *failure) {
        session_reply_failure(session_of(submitter), module->serial, failure);
}

static void session_on_job_ended(Submitter *submitter, Job *job) {
        Session *session = session_of(submitter);

        TAILQ_INSERT_TAIL(&session->ends.list, job, link);
        session->ends.n++;
        session_flush_later(session);
}

const SubmitterOps session_submitter_ops = {
        .job_ended = session_on_job_ended,
        .module_ready = session_on_module_ready,
        .module_failed = session_on_module_failed,
        .arena_ready = session_on_arena_ready,
        .arena_failed = session_on_arena_failed,
        .closed = session_on_closed,
};

void session_seen(Session *session, uint32_t n_seen) {
        if (n_seen &&
            !session->is_resuming) /* until then it counts the previous supervisor's ends */
                ledger_told_seen(session->engine->ledger, &session->ends.told, n_seen);
}

static void session_on_watched_end(JobWatch *watched, const Job *job) {
        SessionWatch *watch = container_of(watched, SessionWatch, watch);

        session_report_end(watch->session, watch->serial, job);
        session_free_watch(watch);
}

_Static_assert(sizeof(Session) + SESSION_BUFFER_FREE + 4096 <= FOOTPRINT_SESSION,
               "a session takes more than gpuqd --check says");

int session_watch(Session *session, Job *job, uint32_t serial) {
        SessionWatch *watch;

        watch = calloc(1, sizeof(*watch));
        if (!watch)
                return -ENOMEM;

        *watch = (SessionWatch){
                .watch.ended = session_on_watched_end,
                .session = session,
                .serial = serial,
        };
        if (user_charge(session->submitter.user, &watch->charge, USER_WAITS, 1) == USER_E_QUOTA) {
                free(watch);
                return USER_E_QUOTA;
        }
        job_watch(job, &watch->watch);
        LIST_INSERT_HEAD(&session->watches.list, watch, link);
        session->watches.n++;
        return 0;
}
