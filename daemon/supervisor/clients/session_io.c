/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input and output of a session's connection: requests as long as the client reads its replies,
 * replies once per turn, and the memory of both.
 */

#include "session.h"

#include <string.h>
#include <sys/socket.h>

#include "jobs.h"
#include "registry.h"
#include "util/list.h"
#include "util/log.h"

/* ---- memory ---------------------------------------------------------------- */

/* Input is dropped at once. Only a client that reads its output gets a moment to receive the reason, or
 * each connection over the limit would keep its share of memory for that moment. */
static void session_end_oversized(Session *session) {
        if (limit_log(&session->engine->log_limit))
                log_notice(
                        "session %u of user %s closed: more than %u bytes of unfinished messages",
                        session->submitter.id, session->submitter.user->name, USER_BUFFERS_MAX);
        if (wire_pending(session->wire) > SESSION_UNREAD_MAX) {
                session_close(session);
                return;
        }
        session_refuse(session, failure_new(FAILURE_QUOTA,
                                            "the connections of user %s have more than %u MiB of "
                                            "unfinished and unread messages; this limit is fixed",
                                            session->submitter.user->name, USER_BUFFERS_MAX >> 20));
        wire_drop_input(session->wire);
}

/* Charges its buffers to its user, which may end the session. Not while one of its frames is in
 * use. */
static void session_account(Session *session) {
        size_t n_bytes;

        if (!session->submitter.user || session->state == SESSION_DEAD)
                return;
        if (session->state == SESSION_CLOSING)
                wire_drop_input(session->wire);

        n_bytes = wire_buffered(session->wire) +
                  (session->deferred.data ? session->deferred.n_data : 0);
        if (n_bytes <= SESSION_BUFFER_FREE)
                n_bytes = 0;
        if (n_bytes == session->buffered.amount)
                return;

        user_uncharge(&session->buffered);
        if (user_charge(session->submitter.user, &session->buffered, USER_BUFFER_BYTES, n_bytes) ==
                    USER_E_QUOTA &&
            session->state != SESSION_CLOSING)
                session_end_oversized(session);
}

/* ---- in -------------------------------------------------------------------- */

static void session_protocol_error(Session *session, const char *problem) {
        if (limit_log(&session->engine->log_limit))
                log_notice("session %u of uid %u closed: protocol error: %s", session->submitter.id,
                           (unsigned)session->peer.uid, problem);
        session_refuse(session, failure_new(FAILURE_PROTOCOL, "protocol error: %s", problem));
}

int session_defer(Session *session, const uint8_t *data, size_t n_data) {
        Clients *clients = session->clients;

        session->deferred.data = malloc(n_data);
        if (!session->deferred.data)
                return -ENOMEM;

        memcpy(session->deferred.data, data, n_data);
        session->deferred.n_data = n_data;
        session->deferred.turn = clients->turn;
        if (!session->deferred.is_second_try && !session->deferred.is_early)
                clients->news_turn =
                        clients->turn +
                        CLIENTS_DEFER_TURNS; /* the awaited request may be on its way */
        TAILQ_INSERT_TAIL(&clients->deferring, session, deferred.link);
        return 0;
}

void session_hold(Session *session, const uint8_t *data, size_t n_data) {
        session->deferred.is_early = true;
        if (session_defer(session, data, n_data) < 0) {
                session_refuse(session, failure_new(FAILURE_MEMORY,
                                                    "gpuqd has no memory to postpone the session"));
                return;
        }
        session_flush_later(session);
}

/* No reply is sent meanwhile: see clients_flush(). */
static bool session_waits_for_keeper(const Session *session) {
        return keeper_link_is_behind(session->engine->keeper);
}

/* The client has so much left to read that its requests wait. A resuming session receives no ends
 * until it has resubmitted everything, so it is always served. */
static bool session_is_behind(const Session *session) {
        return wire_pending(session->wire) > SESSION_UNREAD_MAX ||
               (!session->is_resuming && session->ends.n >= SESSION_ENDED_MAX) ||
               session_waits_for_keeper(session);
}

/* Serves complete requests; stops while the client does not read its replies. */
static void session_serve(Session *session) {
        const char *problem;
        WireFrame frame;
        int r;

        session->is_held_up = false;
        while (session->state < SESSION_CLOSING && !session->is_broken && !session->deferred.data) {
                if (session_is_behind(session)) {
                        session->is_held_up = true;
                        if (session_waits_for_keeper(session))
                                session_flush_later(session); /* the flush serves it */
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
        _cleanup_(freep) uint8_t *data = session->deferred.data;
        const char *problem;

        TAILQ_REMOVE(&session->clients->deferring, session, deferred.link);
        session->deferred.data = NULL;
        session->deferred.is_second_try = !session->deferred.is_early;
        session->deferred.is_early = false;
        problem = session_request(session, data, session->deferred.n_data);
        session->deferred.is_second_try = false;
        if (problem)
                session_protocol_error(session, problem);
        session_serve(session);
        session_poll_ring(session);
        session_flush_later(session);
}

/* Input does not count any more. It is read so that closing does not reset the connection before the
 * peer has the last messages. Return: false: the peer has closed, too. */
static bool session_discard(Session *session) {
        char scratch[16384];
        ssize_t n;

        n = recv(wire_fd(session->wire), scratch, sizeof(scratch), MSG_DONTWAIT);
        return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* @r: the result of receiving. */
static void session_received(Session *session, int r) {
        if (r == WIRE_E_CLOSED || r < 0)
                session_close(session);
        else if (r == WIRE_E_PROTOCOL)
                session_protocol_error(session, wire_problem(session->wire));
        else if (r == 0)
                session_serve(session);
        session_account(session);
}

/* While the client does not read its replies its ring is not read, so that it fills up. */
static void session_read(Session *session) {
        if (session->state == SESSION_CLOSING) {
                if (!session_discard(session))
                        session_close(session);
                return;
        }

        session_received(session, session->is_held_up ? wire_hear(session->wire)
                                                      : wire_receive(session->wire));
        session_poll_ring(session);
}

bool session_read_ring(Session *session) {
        if (session->state >= SESSION_CLOSING || !wire_has_input(session->wire) ||
            session->is_held_up || session->deferred.data)
                return false;

        session->ring.received_ns = 0;
        session_received(session, wire_look(session->wire));
        return true;
}

static void session_on_event(uv_poll_t *poll, int status, int events) {
        Session *session = poll->data;

        if (status < 0) {
                session_close(session);
                return;
        }
        /* The bell may mean that the client has freed space in the ring. */
        if (events & UV_WRITABLE || (wire_is_ringed(session->wire) && wire_pending(session->wire)))
                session_flush_later(session);
        if (events & UV_READABLE)
                session_read(session);
}

/* ---- out ------------------------------------------------------------------- */

void session_flush_later(Session *session) {
        if (session->is_flushing || session->state == SESSION_DEAD)
                return;
        session->is_flushing = true;
        TAILQ_INSERT_TAIL(&session->clients->flushing, session, flush_link);
}

static bool session_takes_replies(const Session *session) {
        return session->state < SESSION_CLOSING && !session->is_broken;
}

/* @r: the result of queuing a reply. */
static void session_queued(Session *session, int r) {
        if (r && limit_log(&session->engine->log_limit))
                log_notice("session %u of uid %u closed: %s", session->submitter.id,
                           (unsigned)session->peer.uid,
                           r == WIRE_E_OVERFLOW ? "it does not read its messages" : strerror(-r));
        session->is_broken = r != 0;
        session_flush_later(session);
}

void session_reply(Session *session, Gpuq__V1__Reply *reply, int fd) {
        if (session_takes_replies(session))
                session_queued(session, wire_queue(session->wire, &reply->base, fd));
}

bool session_reply_begin(Session *session, size_t n_max, uint8_t **ret_payload) {
        if (!session_takes_replies(session))
                return false;
        session_queued(session, wire_begin(session->wire, n_max, ret_payload));
        return !session->is_broken;
}

void session_reply_end(Session *session, size_t n_bytes) {
        wire_end(session->wire, n_bytes);
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

/* Return: false: the session is closed. */
static bool session_write(Session *session) {
        int r;

        r = wire_flush(session->wire);
        if (r == WIRE_E_PROTOCOL) {
                session_protocol_error(session, wire_problem(session->wire));
                r = wire_flush(session->wire);
        }
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
        int events = wire_wants_socket(session->wire) ? UV_WRITABLE : 0;

        if (session->state == SESSION_CLOSING || wire_is_ringed(session->wire) ||
            (n_pending <= SESSION_UNREAD_MAX && !session->deferred.is_early))
                events |= UV_READABLE;
        if (events == session->events)
                return;
        session->events = events;
        uv_poll_start(&session->poll, events, session_on_event);
}

void session_flush(Session *session) {
        if (session->is_flushing)
                TAILQ_REMOVE(&session->clients->flushing, session, flush_link);
        session->is_flushing = false;

        session_report_ended(session);
        if (session->is_broken) {
                session_close(session);
                return;
        }
        if (!session_write(session))
                return;
        if (session->is_held_up && !session_is_behind(session)) {
                session->engine->has_new_work = true;
                session_serve(session);
                session_poll_ring(session);
        }
        session_account(session);
        if (session->state != SESSION_DEAD)
                session_poll(session);
}
