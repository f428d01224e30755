/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LENDING_H
#define GPUQ_SUPERVISOR_LENDING_H

/*
 * Lending
 *
 * A session's direct ring (proto/direct_ring.h), and who reads it. A session that fires prepared jobs and does nothing
 * else is offered to use the ring. Once it does, and its earlier jobs have ended, a worker has the ring as a lease
 * (jobs/lease.h); at all other times what is in it is read here, as if it had come in messages.
 *
 *     IDLE --> OFFERED --> BEGUN --> LENT --> RETURNING --> LEFT --> IDLE
 *                 |          |                               ^
 *                 +----------+-------------------------------+
 *
 * OFFERED: the client may use it, and has not answered yet. BEGUN: it does; its earlier jobs have not ended. RETURNING:
 * the worker was asked for it. LEFT: the client was asked to stop, and has not answered yet. Whatever the client wants
 * besides begins with its answer that it has stopped, DirectEnd, so the order of its jobs is known.
 */

#include "session.h"

/** lending_open() - make the ring, and answer. */
void lending_open(Session *session, uint32_t serial);
/** lending_free() - the session ends; no lease of it is out. */
void lending_free(Session *session);
/** lending_can() - whether sessions may have rings. */
bool lending_can(const Session *session);

/** lending_note_fires() - the session fired prepared jobs by a message: offer it the ring if it is time. */
void lending_note_fires(Session *session, const Gpuq__V1__Fires *fires);
/** lending_note_request() - it sent a request, maybe to fire jobs. Return: NULL, or the protocol error. */
const char *lending_note_request(Session *session, bool is_fire);
/** lending_begin() - the client uses the ring from now on. Return: NULL, or the protocol error. */
const char *lending_begin(Session *session);
/** lending_end() - the client does not use it any more. Return: NULL, or the protocol error. */
const char *lending_end(Session *session);
/** lending_waits() - its other requests wait until the worker has given the ring back. */
bool lending_waits(const Session *session);
/** lending_turn() - at the end of a turn: its earlier jobs may have ended. */
void lending_turn(Session *session);

/** lending_is_out() - a worker has the ring, so jobs of the session may be unknown. */
bool lending_is_out(const Session *session);
/** lending_fetch() - have it given back, if a worker has it. Return: whether it has. */
bool lending_fetch(Session *session);
/** lending_close_later() - the session is to be closed, as soon as the ring is back. Return: false: it may be closed now. */
bool lending_close_later(Session *session);
/** lending_is_closing() - lending_close_later() was true. */
bool lending_is_closing(const Session *session);
/** lending_did() - a job of that id was done by a lease. */
bool lending_did(const Session *session, uint64_t id);

#endif
