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

#define SESSION_READ_STEPS   1u /* what reading a ring costs besides the requests that it finds */
#define SESSION_SOCKET_STEPS 8u /* the same of a socket */
#define SESSION_BYTES_STEP   2048u /* bytes of an unfinished message that cost one step to receive */

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
        if (n_bytes > session->buffered.amount)
                serving_pay(&session->serving,
                            (n_bytes - session->buffered.amount) / SESSION_BYTES_STEP);

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

/* A client that was sent an arena can find it again, whichever process dies. */
static bool session_waits_for_keeper(const Session *session) {
        return !keeper_link_has_sent(session->engine->keeper, session->flush.position);
}

/* The client has so much left to read that its requests wait. A resuming session receives no ends
 * until it has resubmitted everything, so it is always served. */
static bool session_is_behind(const Session *session) {
        return wire_pending(session->wire) > SESSION_UNREAD_MAX ||
               (!session->is_resuming && session->ends.n >= SESSION_ENDED_MAX) ||
               transit_is_full(session->transit) || session_waits_for_keeper(session);
}

static bool session_takes_requests(const Session *session) {
        return session->state < SESSION_CLOSING && !session->is_broken && !session->deferred.data &&
               !session_is_busy(session);
}

/* Whether what its socket holds may be read, when its person has a part of the turn. */
static bool session_reads(const Session *session) {
        return session->state == SESSION_CLOSING || wire_is_ringed(session->wire) ||
               (wire_pending(session->wire) <= SESSION_UNREAD_MAX && !session->deferred.is_early &&
                !transit_is_full(session->transit) && !session_is_busy(session));
}

static void session_on_event(uv_poll_t *poll, int status, int events);

/* The bell may mean that the client has freed space in the ring. */
static bool session_awaits_bell(const Session *session) {
        return wire_is_ringed(session->wire) && wire_pending(session->wire);
}

/*
 * Sockets that may not be read yet are not watched: if an event array is full, libuv asks again at once,
 * up to 48 times.
 */
static void session_poll(Session *session) {
        int events = wire_wants_socket(session->wire) ? UV_WRITABLE : 0;

        if (lending_is_closing(session))
                return;
        if (session_reads(session) &&
            (!session->serving.is_waiting || session_awaits_bell(session)))
                events |= UV_READABLE;
        if (events == session->events)
                return;
        session->events = events;
        uv_poll_start(&session->poll, events, session_on_event);
}

/* Return: false: the rest waits for the next turn. */
static bool session_goes_on(Session *session) {
        if (serving_goes_on(&session->serving))
                return true;
        serving_wait(&session->clients->serving, &session->serving);
        session_poll(session);
        return false;
}

static void session_visit(Session *session) {
        serving_visit(&session->clients->serving, &session->serving);
}

static void session_leave_off(Session *session) {
        serving_leave_off(&session->clients->serving, &session->serving);
}

static void session_put_back(Session *session, const WireFrame *frame) {
        wire_put_back(session->wire, frame);
        serving_wait(&session->clients->serving, &session->serving);
        session_poll(session);
}

/* Return: NULL, or the protocol error. */
static const char *session_serve_frame(Session *session, const WireFrame *frame) {
        const char *problem;

        session->unfinished.may_leave_off = true;
        problem = session_request(session, frame->data, frame->n_data);
        session->unfinished.may_leave_off = false;
        if (session->unfinished.n_served)
                session_put_back(session, frame);
        return problem;
}

/* Serves complete requests; stops while the client does not read its replies. */
static void session_serve(Session *session) {
        const char *problem;
        WireFrame frame;
        int r;

        session->is_held_up = false;
        while (session_takes_requests(session)) {
                if (session_is_behind(session)) {
                        session->is_held_up = true;
                        session_flush_later(session); /* the flush, or a later one, serves it */
                        return;
                }
                if (!session_goes_on(session))
                        return;
                r = wire_next(session->wire, &frame);
                if (r == WIRE_E_AGAIN)
                        return;
                problem = r ? wire_problem(session->wire) : session_serve_frame(session, &frame);
                if (problem)
                        session_protocol_error(session, problem);
        }
}

static void session_request_deferred(Session *session) {
        _cleanup_(freep) uint8_t *data = session->deferred.data;
        const char *problem;

        session->deferred.data = NULL;
        session->deferred.is_second_try = !session->deferred.is_early;
        session->deferred.is_early = session->deferred.is_due = false;
        problem = session_request(session, data, session->deferred.n_data);
        session->deferred.is_second_try = false;
        if (problem)
                session_protocol_error(session, problem);
}

/* A thousand sessions of one person may have a request that is due in this turn. */
void session_serve_deferred(Session *session) {
        session_begin(session, ACTIVITY_REQUEST);
        TAILQ_REMOVE(&session->clients->deferring, session, deferred.link);
        session->deferred.is_due = true;
        session_visit(session);
        if (!session_goes_on(session))
                return; /* session_serve_waiting() goes on */
        session_request_deferred(session);
        session_serve(session);
        session_leave_off(session);
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
        serving_pay(&session->serving, SESSION_READ_STEPS);
        if (r == WIRE_E_CLOSED || r < 0)
                session_close(session);
        else if (r == WIRE_E_PROTOCOL)
                session_protocol_error(session, wire_problem(session->wire));
        else if (r == 0)
                session_serve(session);
        session_account(session);
        session_leave_off(session);
}

/* While the client does not read its replies its ring is not read, so that it fills up. */
static void session_receive(Session *session) {
        serving_pay(&session->serving, SESSION_SOCKET_STEPS);
        session_received(session, session->is_held_up ? wire_hear(session->wire)
                                                      : wire_receive(session->wire));
}

static void session_read(Session *session) {
        if (session->state == SESSION_CLOSING) {
                if (!session_discard(session))
                        session_close(session);
                return;
        }

        session_visit(session);
        if (!session_goes_on(session))
                return; /* it waits, and its socket is not watched */
        session_receive(session);
        session_poll_ring(session);
}

/* First what it has sent, then what the socket holds: it may have been passed over there. */
void session_serve_waiting(Session *session) {
        if (session->unfinished.cancel)
                session_cancel_more(session);
        if (session->deferred.is_due)
                session_request_deferred(session);
        session_answer_reports(session);
        session_serve(session);
        if (session->state < SESSION_CLOSING && serving_goes_on(&session->serving) &&
            session_reads(session))
                session_receive(session);
        session_leave_off(session);
        session_poll_ring(session);
        session_flush_later(session);
}

bool session_read_ring(Session *session) {
        if (session->state >= SESSION_CLOSING || !wire_has_input(session->wire) ||
            session->is_held_up || session->deferred.data || session_is_busy(session))
                return false;

        session_begin(session, ACTIVITY_REQUEST);
        session_visit(session);
        if (!session_goes_on(session))
                return false;
        session->ring.received_ns = 0;
        session_received(session, wire_look(session->wire));
        return true;
}

static void session_on_event(uv_poll_t *poll, int status, int events) {
        Session *session = poll->data;

        session_begin(session, ACTIVITY_REQUEST);
        if (status < 0) {
                session_close(session);
                return;
        }
        if (events & UV_WRITABLE || session_awaits_bell(session))
                session_flush_later(session);
        if (events & UV_READABLE)
                session_read(session);
}

/* ---- out ------------------------------------------------------------------- */

void session_flush_later(Session *session) {
        if (session->flush.is_queued || session->state == SESSION_DEAD)
                return;
        session->flush.is_queued = true;
        TAILQ_INSERT_TAIL(&session->clients->flushing, session, flush.link);
}

void session_unqueue(Session *session) {
        struct Sessions *list = session->flush.is_waiting ? &session->clients->keeping
                                                          : &session->clients->flushing;

        if (session->flush.is_queued)
                TAILQ_REMOVE(list, session, flush.link);
        session->flush.is_queued = session->flush.is_waiting = false;
}

/* Until clients_flush() finds that the keeper has its arenas. */
static void session_flush_when_kept(Session *session) {
        session_unqueue(session);
        session->flush.is_queued = session->flush.is_waiting = true;
        TAILQ_INSERT_TAIL(&session->clients->keeping, session, flush.link);
}

static bool session_takes_replies(const Session *session) {
        return session->state < SESSION_CLOSING && !session->is_broken;
}

/* @r: the result of queuing a reply. */
static void session_queued(Session *session, int r) {
        if (r && limit_log(&session->engine->log_limit))
                log_notice("session %u of uid %u closed: %s", session->submitter.id,
                           (unsigned)session->peer.uid,
                           r == WIRE_E_OVERFLOW ? "the client does not read its messages"
                                                : strerror(-r));
        session->is_broken = r != 0;
        session_flush_later(session);
}

static void session_on_read(void *userdata) {
        session_flush_later(userdata);
}

static int session_need_transit(Session *session) {
        return session->transit
                       ? 0
                       : transit_new(session->clients->transits, session->submitter.user,
                                     session->wire, session_on_read, session, &session->transit);
}

Failure *session_check_room(Session *session) {
        if (session_need_transit(session) < 0)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a reply");
        return transit_check(session->transit);
}

/* Return: false: it was answered with the reason why it cannot be sent. */
static bool session_add_fd(Session *session, uint32_t serial) {
        int r;

        r = session_need_transit(session);
        if (r == 0)
                r = transit_add(session->transit);
        if (r)
                session_fail_request(session, serial,
                                     r == USER_E_QUOTA ? transit_failure(session->transit)
                                                       : failure_new(FAILURE_MEMORY,
                                                                     "cannot send a descriptor: %s",
                                                                     strerror(-r)));
        return r == 0;
}

void session_reply(Session *session, Gpuq__V1__Reply *reply, int fd) {
        if (session_takes_replies(session) && (fd < 0 || session_add_fd(session, reply->serial)))
                session_queued(session, wire_queue(session->wire, &reply->base, fd));
}

bool session_reply_begin(Session *session, uint32_t serial, int fd, size_t n_max,
                         uint8_t **ret_payload) {
        int r;

        if (!session_takes_replies(session) || (fd >= 0 && !session_add_fd(session, serial)))
                return false;
        r = wire_begin(session->wire, n_max, ret_payload);
        if (r == 0 && fd >= 0)
                r = wire_attach(session->wire, fd);
        session_queued(session, r);
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

/* A refused connection is not any user's, so that only few may keep descriptors of ours. */
static bool session_has_to_go(const Session *session) {
        return session_is_refused(session) && session->clients->n_refused > SESSION_REFUSED_MAX;
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
        if (r == 0 && session_has_to_go(session)) {
                session_close(session);
                return false;
        }
        if (r == 0 && session->state == SESSION_CLOSING && !session->is_shut) {
                session->is_shut = true;
                shutdown(wire_fd(session->wire), SHUT_WR);
        }
        return true;
}

void session_flush(Session *session) {
        session_unqueue(session);
        session_begin(session, ACTIVITY_OUTPUT);
        session_report_ended(session);
        lending_turn(session);
        if (session->is_broken) {
                session_close(session);
                return;
        }
        if (session_waits_for_keeper(session)) {
                session_flush_when_kept(session);
                return;
        }
        if (!session_write(session))
                return;
        if (session->is_abandoned && transit_is_full(session->transit)) {
                session_close(session);
                return;
        }
        if (session->is_held_up && !session_is_behind(session)) {
                session->engine->has_new_work = true;
                session_visit(session);
                session_serve(session);
                session_leave_off(session);
                session_poll_ring(session);
        }
        session_account(session);
        if (session->state != SESSION_DEAD)
                session_poll(session);
}
