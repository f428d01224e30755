/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CLIENTS_ROOM_H
#define GPUQ_SUPERVISOR_CLIENTS_ROOM_H

/*
 * Clients: the room's public header
 *
 * Owns the listening socket, the sessions of connected clients, the decoding and checking of their
 * requests, and the replies. It may call jobs/ and the rooms below. It promises that no client input
 * reaches another room unchecked, that protobuf stays in this room, that each person gets a bounded
 * part of each turn of the loop, and that a client that breaks the protocol loses its own connection
 * and nothing else.
 */

#include "accounting_ops.h"
#include "arrivals.h"
#include "detached_ops.h"
#include "listener.h"
#include "registry.h"
#include "session.h"

/** clients_init() - in zeroed memory. Return: 0, or a negative errno. */
int clients_init(Clients *clients, Engine *engine);
/** clients_fini() - its sessions must be closed. */
void clients_fini(Clients *clients);
/** clients_close() - close all sessions at once, without a message. */
void clients_close(Clients *clients);
/** clients_close_handles() - the loop ends, all sessions are closed: accept no more connections, watch nothing, stop timers. */
void clients_close_handles(Clients *clients);
/** clients_stop_listening() - accept no more connections. */
void clients_stop_listening(Clients *clients);
/** clients_refuse() - accept no more connections, and send all sessions the reason why they end. */
void clients_refuse(Clients *clients, int code, const char *why);

/* In each turn of the loop */

/** clients_heed_answers() - lookups of users have ended: go on with their connections in the next turn. */
void clients_heed_answers(Clients *clients);
/**
 * clients_begin_turn() - divide a new turn among people, and serve the sessions that waited for it
 * @gives_parts: see serving.h
 * @pass_on:     as for clients_read_rings()
 */
void clients_begin_turn(Clients *clients, bool gives_parts, void (*pass_on)(void *userdata),
                        void *userdata);
/** clients_has_waiting() - sessions wait for a later turn: the loop must not sleep for long. */
bool clients_has_waiting(const Clients *clients);
/**
 * clients_serve_deferred() - serve the requests that waited until all connections were read
 * @is_awaiting: sessions from before a restart may still name jobs; requests that name those wait for news
 * @has_news:    such a session said something since the last turn
 */
void clients_serve_deferred(Clients *clients, bool is_awaiting, bool has_news);
/** clients_has_deferred() - a deferred request may be served in the next turn: the loop must not sleep. */
bool clients_has_deferred(const Clients *clients);
/**
 * clients_read_rings() - serve the requests in polled rings
 *
 * @pass_on: called after some rings brought jobs, so that these start before the other rings are
 * read.
 */
void clients_read_rings(Clients *clients, void (*pass_on)(void *userdata), void *userdata);
/**
 * clients_unpoll_rings() - stop polling rings that were idle for a while, or all of them if the
 * loop @may_sleep; their clients ring the bell again
 *
 * Return: false: a request arrived meanwhile.
 */
bool clients_unpoll_rings(Clients *clients, bool may_sleep, uint64_t now_ns);
/** clients_flush() - send what is queued. */
void clients_flush(Clients *clients);
/** clients_tick() - called periodically: sessions do not stay CLOSING, or without a hello, for ever. */
void clients_tick(Clients *clients, uint64_t now_ns);

#endif
