/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's ring: made at the client's request, and polled in each turn of the loop while requests
 * come by it.
 */

#include <string.h>

#include "jobs.h"
#include "registry.h"
#include "session.h"
#include "util/log.h"

bool session_can_ring(const Session *session) {
        const Config *config = session->engine->config;

        return config->rings.messages && config->poll_us;
}

/* ---- looking --------------------------------------------------------------- */

void session_poll_ring(Session *session) {

        if (session->ring.is_polled || session->state >= SESSION_CLOSING ||
            !wire_is_ringed(session->wire))
                return;

        wire_wake(session->wire);
        session->ring.received_ns = 0;
        session->ring.is_polled = true;
        TAILQ_INSERT_TAIL(&session->clients->polled, session, ring.link);
}

/* Neither a held-up session nor one that waits for a turn is waited for: serving it reads its ring again. */
bool session_unpoll_ring(Session *session) {
        bool is_served = session->state < SESSION_CLOSING && !session->is_held_up &&
                         !session->serving.is_waiting && !session->deferred.data &&
                         !session_is_busy(session);

        if (!wire_sleep(session->wire) && is_served)
                return false;

        session->ring.is_polled = false;
        TAILQ_REMOVE(&session->clients->polled, session, ring.link);
        return true;
}

/* ---- making it ------------------------------------------------------------- */

/* Return: NULL: the ring exists, with its memory in @ret_fd. */
static Failure *session_make_ring(Session *session, int *ret_fd) {
        Failure *failure;
        int r;

        if (!session_can_ring(session))
                return failure_new(FAILURE_INVALID,
                                   "rings are switched off; see rings and poll_us in gpuqd.conf");
        if (wire_has_ring(session->wire))
                return failure_new(FAILURE_INVALID, "this session already has a ring");
        failure = session_check_room(session);
        if (failure)
                return failure;
        if (user_charge(session->submitter.user, &session->ring.charge, USER_RING_BYTES,
                        2 * SESSION_RING_BYTES) == USER_E_QUOTA)
                return failure_new(FAILURE_QUOTA,
                                   "the connections of user %s already have %u MiB of rings; this "
                                   "limit is fixed",
                                   session->submitter.user->name, USER_RINGS_MAX >> 20);

        r = wire_make_ring(session->wire, SESSION_RING_BYTES, ret_fd);
        if (r == 0)
                return NULL;
        user_uncharge(&session->ring.charge);
        return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a ring: %s", strerror(-r));
}

void session_open_ring(Session *session, uint32_t serial) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__RingReady ready = GPUQ__V1__RING_READY__INIT;
        _cleanup_(closep) int fd = -1;
        Failure *failure;

        failure = session_make_ring(session, &fd);
        if (failure) {
                session_fail_request(session, serial, failure);
                return;
        }

        ready.capacity = SESSION_RING_BYTES;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_RING_READY;
        reply.ring_ready = &ready;
        session_reply(session, &reply, fd);
}

const char *session_begin_ring(Session *session, uint32_t serial) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__RingBegun begun = GPUQ__V1__RING_BEGUN__INIT;

        if (!wire_has_ring(session->wire))
                return "the client switched to a ring that was not created";
        if (wire_is_ringed(session->wire))
                return "the client switched to its ring twice";

        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_RING_BEGUN;
        reply.ring_begun = &begun;
        session_reply(session, &reply, -1);
        wire_ring_output(session->wire);
        wire_ring_input(session->wire);
        session_poll_ring(session);
        return NULL;
}
