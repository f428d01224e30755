/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TRANSIT_H
#define GPUQ_SUPERVISOR_TRANSIT_H

/*
 * Transit
 *
 * The descriptors that were sent to one client and that it has not read. The kernel counts those of
 * all clients against the supervisor's uid, and lets it send none, to anybody, over its limit of
 * descriptors. So each is charged to its user until it is read, and a part of the limit is divided
 * among the users (RESOURCE_TRANSIT_PART); the rest is for what the supervisor sends to the keeper and
 * to workers.
 *
 * A connection may have TRANSIT_MAX of them, then its requests wait. If its session ends with some
 * unread, the socket lingers: it and they are charged until the client has read them or has closed
 * its end. The kernel reports that; nothing is looked at periodically.
 */

#include <stdbool.h>

#include <uv.h>

#include "jobs.h"
#include "proto/wire.h"

#define TRANSIT_MAX 64u /* of one connection */

typedef struct Transit Transit;
typedef struct Transits Transits; /* of all connections */

/** Fewer are unread. The functions below call it, for other connections, too: it may only note it. */
typedef void (*TransitRead)(void *userdata);

/** transits_new() - Return: 0, or a negative errno. */
int transits_new(uv_loop_t *loop, Transits **ret_transits);
/** transits_close() - close the sockets that linger; the loop frees the rest later. NULL is fine. Return: NULL. */
Transits *transits_close(Transits *transits);
/** transits_count() - sockets that linger. */
unsigned transits_count(const Transits *transits);

/**
 * transit_new() - for one connection, before its first descriptor
 * @wire: the caller's, valid until transit_end()
 *
 * Return: 0, or -ENOMEM.
 */
int transit_new(Transits *transits, User *user, Wire *wire, TransitRead read, void *userdata,
                Transit **ret_transit);
/** transit_end() - the session has ended. @charge: its own, which a lingering socket takes over. NULL is fine. Return: NULL. */
Transit *transit_end(Transit *transit, UserCharge *charge);
/** transit_check() - Return: NULL: there is room for one more; or why not. */
Failure *transit_check(Transit *transit);
/** transit_failure() - there was no room for one more. */
Failure *transit_failure(const Transit *transit);
/** transit_add() - charge one more, which is about to be queued. Return: 0, USER_E_QUOTA or a negative errno. */
int transit_add(Transit *transit);
/** transit_is_full() - the client has to read some before it gets more; NULL is fine. */
bool transit_is_full(Transit *transit);

#endif
