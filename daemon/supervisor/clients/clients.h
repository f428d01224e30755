/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CLIENTS_ROOM_H
#define GPUQ_SUPERVISOR_CLIENTS_ROOM_H

/*
 * Clients: the room's public header
 *
 * Owns the listening socket, the sessions of connected clients, the decoding and
 * checking of their requests, and the replies. It may call jobs/ and what is below.
 * It promises that nothing a client sends reaches another room unchecked, that
 * protobuf goes no further than here, that each session gets a bounded part of each
 * turn of the loop, and that a client that breaks the protocol loses its own
 * connection and nothing else.
 */

#include "detached_ops.h"
#include "listener.h"
#include "registry.h"
#include "session.h"

/** clients_init() - in zeroed memory. Return: 0, or -ENOMEM. */
int clients_init(Clients *clients, Engine *engine);
/** clients_fini() - of one whose sessions were closed. */
void clients_fini(Clients *clients);
/** clients_close() - close all sessions at once, without a word. */
void clients_close(Clients *clients);
/** clients_refuse() - accept nobody any more, and tell all sessions why they end. */
void clients_refuse(Clients *clients, int code, const char *why);

/* In each turn of the loop */

/** clients_serve_deferred() - serve the requests that waited until all connections were read. */
void clients_serve_deferred(Clients *clients);
/** clients_read_rings() - serve what is in the rings. @pass_on: called when some rings brought jobs, so that those start before the others are read. */
void clients_read_rings(Clients *clients, void (*pass_on)(void *userdata), void *userdata);
/** clients_unpoll_rings() - rings that brought nothing of late ring from now on; all of them if the loop @may_sleep. Return: false: something came meanwhile. */
bool clients_unpoll_rings(Clients *clients, bool may_sleep, uint64_t now_ns);
/** clients_flush() - send what waits. */
void clients_flush(Clients *clients);
/** clients_tick() - now and then: closing sessions do not linger for ever. */
void clients_tick(Clients *clients, uint64_t now_ns);

#endif
