/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/session.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/ending.h"
#include "supervisor/keeper_link.h"
#include "supervisor/limit.h"
#include "supervisor/list.h"
#include "supervisor/supervisor.h"
#include "util/log.h"

static void session_on_close(uv_handle_t *handle);
static void session_on_event(uv_poll_t *poll, int status, int events);

/* ---- begin ----------------------------------------------------------------- */

static void session_mark(Session *session) {
        if (session->is_flushing || session->state == SESSION_DEAD)
                return;
        session->is_flushing = true;
        TAILQ_INSERT_TAIL(&session->supervisor->flushing, session, flush_link);
}

static void session_keep(Session *session) {
        char key[KEEPER_KEY_MAX];

        snprintf(key, sizeof(key), "session-%u", session->id);
        keeper_link_keep(session->supervisor->keeper, key, wire_fd(session->wire));
        session->is_kept = true;
}

/* Return: NULL: it is in. */
static Failure *session_enter(Session *session) {
        Supervisor *supervisor = session->supervisor;
        User *user;
        int r;

        r = supervisor_get_user(supervisor, session->peer.uid, session->peer.gid, &user);
        if (r < 0)
                return failure_new(FAILURE_INTERNAL, "no user: %s", strerror(-r));
        r = user_charge(user, &session->charge, USER_SESSIONS, 1);
        if (r == USER_E_QUOTA)
                return limit_failure(user, USER_SESSIONS, 1);
        r = order_new(&session->order);
        if (r < 0)
                return failure_new(FAILURE_INTERNAL, "no session: %s", strerror(-r));

        session->user = user;
        user->n_sessions++;
        LIST_INSERT_HEAD(&user->sessions, session, user_link);
        session_keep(session);
        return NULL;
}

static int session_alloc(Supervisor *supervisor, const Peer *peer, Session **ret_session) {
        Session *session;

        session = calloc(1, sizeof(*session));
        if (!session)
                return -ENOMEM;

        session->supervisor = supervisor;
        session->peer = *peer;
        TAILQ_INIT(&session->jobs);
        TAILQ_INIT(&session->ended);
        LIST_INIT(&session->making);
        LIST_INIT(&session->modules);
        LIST_INIT(&session->watches);
        *ret_session = session;
        return 0;
}

/* Numbers come back after 2^32 sessions; one that is still in use is passed over. */
static uint32_t session_next_id(Supervisor *supervisor) {
        Session *other;
        uint32_t id;

        do {
                id = ++supervisor->last_session;
                HASH_FIND(hh, supervisor->sessions, &id, sizeof(id), other);
        } while (other || id == 0);
        return id;
}

int session_new(Supervisor *supervisor, int fd, const Peer *peer, Failure *refusal) {
        _cleanup_(failure_freep) Failure *owned = refusal;
        Session *session;
        int r;

        r = session_alloc(supervisor, peer, &session);
        if (r < 0)
                return r;
        r = uv_poll_init(&supervisor->loop, &session->poll, fd);
        if (r < 0) {
                free(session);
                return r;
        }
        session->poll.data = session;
        r = wire_new(fd, false, &session->wire);
        if (r < 0) {
                session->state = SESSION_DEAD;
                uv_close((uv_handle_t *)&session->poll, session_on_close);
                return r;
        }

        session->id = session_next_id(supervisor);
        HASH_ADD(hh, supervisor->sessions, id, sizeof(session->id), session);
        if (!owned)
                owned = session_enter(session);
        if (owned)
                session_refuse(session, TAKE_PTR(owned));
        session_mark(session);
        return 0;
}

/* ---- end ------------------------------------------------------------------- */

static void session_on_close(uv_handle_t *handle) {
        Session *session = handle->data;

        wire_free(session->wire);
        free(session);
}

/* The last first, so that none starts because one before it ended. */
static void session_abandon_jobs(Session *session) {
        uint64_t now_ns = uv_hrtime();
        Job *job;

        while ((job = TAILQ_LAST(&session->jobs, SessionJobs))) {
                TAILQ_REMOVE(&session->jobs, job, session_link);
                job->session = NULL;
                job->orphan_ns = now_ns;
                if (job->state == JOB_WAITING || job->item.is_queued)
                        ending_doom(job, JOB_CANCELLED,
                                    failure_new(FAILURE_CANCELLED, "its client is gone"));
        }
        while ((job = TAILQ_FIRST(&session->ended))) {
                TAILQ_REMOVE(&session->ended, job, link);
                job_free(job);
        }
}

static void session_drop_watches(Session *session) {
        JobWatch *watch;

        while ((watch = LIST_FIRST(&session->watches))) {
                LIST_REMOVE(watch, session_link);
                LIST_REMOVE(watch, job_link);
                free(watch);
        }
}

static void session_drop_arenas(Session *session) {
        Arena *arena;

        while ((arena = LIST_FIRST(&session->making))) {
                LIST_REMOVE(arena, maker_link);
                arena->maker = NULL;
        }
        while (session->openings)
                session_close_arena(session, session->openings->id);
}

static void session_drop_prepared(Session *session) {
        while (session->prepared)
                session_unprepare(session, session->prepared->id);
}

static void session_drop_deferred(Session *session) {
        if (!session->deferred)
                return;
        TAILQ_REMOVE(&session->supervisor->deferring, session, deferred_link);
        free(session->deferred);
        session->deferred = NULL;
}

static void session_leave(Session *session) {
        char key[KEEPER_KEY_MAX];

        if (!session->user)
                return;

        LIST_REMOVE(session, user_link);
        session->user->n_sessions--;
        snprintf(key, sizeof(key), "session-%u", session->id);
        keeper_link_drop(session->supervisor->keeper, key);
}

void session_close(Session *session) {
        Module *module;

        if (session->state == SESSION_DEAD)
                return;

        session->state = SESSION_DEAD;
        session->supervisor->is_stirred = true;
        if (session->is_flushing)
                TAILQ_REMOVE(&session->supervisor->flushing, session, flush_link);
        HASH_DEL(session->supervisor->sessions, session);
        session_drop_deferred(session);
        session_abandon_jobs(session);
        session_drop_watches(session);
        while ((module = LIST_FIRST(&session->modules)))
                module_detach(module);
        session_drop_arenas(session);
        session_drop_prepared(session);
        session_leave(session);
        order_free(session->order);
        user_uncharge(&session->charge);
        user_uncharge(&session->buffered);
        uv_close((uv_handle_t *)&session->poll, session_on_close);
}

void session_refuse(Session *session, Failure *failure) {
        if (session->state < SESSION_CLOSING) {
                session_reply_failure(session, 0, failure);
                session_drop_deferred(session);
                session->state = SESSION_CLOSING;
                session->closing_ns = uv_hrtime();
                session_mark(session);
        }
        failure_free(failure);
}

void session_tick(Session *session, uint64_t now_ns) {
        if (session->state == SESSION_CLOSING &&
            now_ns - session->closing_ns > SESSION_LINGER_MS * 1000000ull)
                session_close(session);
}

/* ---- memory ---------------------------------------------------------------- */

/* What came is forgotten at once, what is to go out has a moment: only one that reads is told,
 * or each connection over the limit would keep its share of memory for that moment. */
static void session_end_oversized(Session *session) {
        if (limit_log(&session->supervisor->log_limit))
                log_notice("session %u of user %s is ended: over %u bytes of unfinished messages",
                           session->id, session->user->name, USER_BUFFERS_MAX);
        if (wire_pending(session->wire) > SESSION_UNREAD_MAX) {
                session_close(session);
                return;
        }
        session_refuse(session,
                       failure_new(FAILURE_QUOTA,
                                   "all connections of user %s together have more than %u MiB of "
                                   "messages half sent or not read; this limit is fixed",
                                   session->user->name, USER_BUFFERS_MAX >> 20));
        wire_drop_input(session->wire);
}

/* Makes its buffers count for its user; may end it. Not while a frame of it is looked at. */
static void session_account(Session *session) {
        size_t n_bytes;

        if (!session->user || session->state == SESSION_DEAD)
                return;
        if (session->state == SESSION_CLOSING)
                wire_drop_input(session->wire);

        n_bytes = wire_buffered(session->wire) + (session->deferred ? session->n_deferred : 0);
        if (n_bytes <= SESSION_BUFFER_FREE)
                n_bytes = 0;
        if (n_bytes == session->buffered.amount)
                return;

        user_uncharge(&session->buffered);
        if (user_charge(session->user, &session->buffered, USER_BUFFER_BYTES, n_bytes) ==
                    USER_E_QUOTA &&
            session->state != SESSION_CLOSING)
                session_end_oversized(session);
}

/* ---- in -------------------------------------------------------------------- */

static void session_protocol_error(Session *session, const char *problem) {
        if (limit_log(&session->supervisor->log_limit))
                log_notice("session %u of uid %u broke the protocol: %s", session->id,
                           (unsigned)session->peer.uid, problem);
        session_refuse(session, failure_new(FAILURE_PROTOCOL, "%s", problem));
}

int session_defer(Session *session, const uint8_t *data, size_t n_data) {
        Supervisor *supervisor = session->supervisor;

        session->deferred = malloc(n_data);
        if (!session->deferred)
                return -ENOMEM;

        memcpy(session->deferred, data, n_data);
        session->n_deferred = n_data;
        session->deferred_turn = supervisor->turn;
        TAILQ_INSERT_TAIL(&supervisor->deferring, session, deferred_link);
        return 0;
}

/* What is whole of what came; stops while its answers are not read. */
static void session_serve(Session *session) {
        const char *problem;
        WireFrame frame;
        int r;

        session->is_held_up = false;
        while (session->state < SESSION_CLOSING && !session->is_broken && !session->deferred) {
                if (wire_pending(session->wire) > SESSION_UNREAD_MAX) {
                        session->is_held_up = true;
                        return;
                }
                r = wire_next(session->wire, &frame);
                if (r == WIRE_E_AGAIN)
                        return;
                problem = r ? wire_problem(session->wire)
                            : session_request(session, frame.data, frame.n_data);
                if (problem)
                        session_protocol_error(session, problem);
        }
}

void session_serve_deferred(Session *session) {
        _cleanup_(freep) uint8_t *data = session->deferred;
        const char *problem;

        TAILQ_REMOVE(&session->supervisor->deferring, session, deferred_link);
        session->deferred = NULL;
        session->is_second_try = true;
        problem = session_request(session, data, session->n_deferred);
        session->is_second_try = false;
        if (problem)
                session_protocol_error(session, problem);
        session_serve(session);
        session_mark(session);
}

/* Nothing it says counts any more; read on, so that closing does not reset the
 * connection before it has our last words. Return: false: it closed too. */
static bool session_discard(Session *session) {
        char scratch[16384];
        ssize_t n;

        n = recv(wire_fd(session->wire), scratch, sizeof(scratch), MSG_DONTWAIT);
        return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void session_read(Session *session) {
        int r;

        if (session->state == SESSION_CLOSING) {
                if (!session_discard(session))
                        session_close(session);
                return;
        }

        r = wire_receive(session->wire);
        if (r == WIRE_E_CLOSED || r < 0)
                session_close(session);
        else if (r == WIRE_E_PROTOCOL)
                session_protocol_error(session, wire_problem(session->wire));
        else if (r == 0)
                session_serve(session);
        session_account(session);
}

static void session_on_event(uv_poll_t *poll, int status, int events) {
        Session *session = poll->data;

        if (status < 0) {
                session_close(session);
                return;
        }
        if (events & UV_WRITABLE)
                session_mark(session);
        if (events & UV_READABLE)
                session_read(session);
}

/* ---- out ------------------------------------------------------------------- */

void session_reply(Session *session, Gpuq__V1__Reply *reply, int fd) {
        int r;

        if (session->state >= SESSION_CLOSING || session->is_broken)
                return;

        r = wire_queue(session->wire, &reply->base, fd);
        if (r && limit_log(&session->supervisor->log_limit))
                log_notice("session %u of uid %u is dropped: %s", session->id,
                           (unsigned)session->peer.uid,
                           r == WIRE_E_OVERFLOW ? "it does not read" : strerror(-r));
        session->is_broken = r != 0;
        session_mark(session);
}

void session_reply_failure(Session *session, uint32_t serial, const Failure *failure) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Error error = failure_to_proto(failure);

        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_ERROR;
        reply.error = &error;
        session_reply(session, &reply, -1);
}

void session_fail_request(Session *session, uint32_t serial, Failure *failure) {
        session_reply_failure(session, serial, failure);
        failure_free(failure);
}

/* Return: false: it is closed. */
static bool session_write(Session *session) {
        int r;

        r = wire_flush(session->wire);
        if (r == WIRE_E_CLOSED || r < 0) {
                session_close(session);
                return false;
        }
        if (r == 0 && session->state == SESSION_CLOSING && !session->is_shut) {
                session->is_shut = true;
                shutdown(wire_fd(session->wire), SHUT_WR);
        }
        return true;
}

static void session_poll(Session *session) {
        size_t n_pending = wire_pending(session->wire);
        int events = n_pending ? UV_WRITABLE : 0;

        if (session->state == SESSION_CLOSING || n_pending <= SESSION_UNREAD_MAX)
                events |= UV_READABLE;
        if (events == session->events)
                return;
        session->events = events;
        uv_poll_start(&session->poll, events, session_on_event);
}

void session_flush(Session *session) {
        if (session->is_flushing)
                TAILQ_REMOVE(&session->supervisor->flushing, session, flush_link);
        session->is_flushing = false;

        session_report_ended(session);
        if (session->is_broken) {
                session_close(session);
                return;
        }
        if (!session_write(session))
                return;
        if (session->is_held_up && wire_pending(session->wire) <= SESSION_UNREAD_MAX) {
                session->supervisor->is_stirred = true;
                session_serve(session);
        }
        session_account(session);
        if (session->state != SESSION_DEAD)
                session_poll(session);
}

/* ---- arenas, modules, jobs ------------------------------------------------- */

int session_open_arena(Session *session, Arena *arena) {
        Opening *opening;

        HASH_FIND(hh, session->openings, &arena->id, sizeof(arena->id), opening);
        if (opening)
                return 0;
        opening = calloc(1, sizeof(*opening));
        if (!opening)
                return -ENOMEM;

        opening->id = arena->id;
        opening->arena = arena_ref(arena);
        HASH_ADD(hh, session->openings, id, sizeof(opening->id), opening);
        return 0;
}

void session_close_arena(Session *session, uint64_t id) {
        Opening *opening;

        HASH_FIND(hh, session->openings, &id, sizeof(id), opening);
        if (!opening)
                return;
        HASH_DEL(session->openings, opening);
        arena_unref(opening->arena);
        free(opening);
}

static Session *session_take_maker(Arena *arena) {
        Session *session = arena->maker;

        if (session)
                LIST_REMOVE(arena, maker_link);
        arena->maker = NULL;
        return session;
}

void session_reply_arena(Session *session, uint32_t serial, const Arena *arena) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__ArenaReady ready = GPUQ__V1__ARENA_READY__INIT;

        ready.arena = arena->id;
        ready.place = (Gpuq__V1__Place)arena->place;
        ready.size = arena->size;
        ready.device = arena->device ? arena->device->index : 0;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_ARENA;
        reply.arena = &ready;
        session_reply(session, &reply, arena->place == ARENA_DEVICE ? -1 : arena->fd);
}

void session_arena_ready(Arena *arena) {
        Session *session = session_take_maker(arena);

        if (!session)
                return;
        if (session_open_arena(session, arena) < 0)
                session_fail_request(session, arena->serial,
                                     failure_new(FAILURE_MEMORY, "no memory for an arena"));
        else
                session_reply_arena(session, arena->serial, arena);
}

void session_arena_failed(Arena *arena, Failure *failure) {
        Session *session = session_take_maker(arena);

        if (session)
                session_reply_failure(session, arena->serial, failure);
        failure_free(failure);
}

void session_module_ready(Session *session, const Module *module, const ModuleReport *report) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__ModuleReady ready = GPUQ__V1__MODULE_READY__INIT;

        ready.module = module->id;
        ready.has_variables = report->has_variables;
        ready.log = (char *)report->log;
        ready.kernels = report->kernels;
        ready.n_kernels = report->n_kernels;
        reply.serial = module->serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_MODULE;
        reply.module = &ready;
        session_reply(session, &reply, -1);
}

void session_job_ended(Session *session, Job *job) {
        if (job->is_made)
                TAILQ_REMOVE(&session->jobs, job, session_link);
        TAILQ_INSERT_TAIL(&session->ended, job, link);
        session_mark(session);
}

int session_watch(Session *session, Job *job, uint32_t serial) {
        JobWatch *watch;

        watch = calloc(1, sizeof(*watch));
        if (!watch)
                return -ENOMEM;

        *watch = (JobWatch){.session = session, .serial = serial, .job = job};
        LIST_INSERT_HEAD(&job->watches, watch, job_link);
        LIST_INSERT_HEAD(&session->watches, watch, session_link);
        return 0;
}
