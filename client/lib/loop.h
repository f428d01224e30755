/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_LOOP_H
#define GPUQ_LIB_LOOP_H

/*
 * Loop
 *
 * The descriptor that a user's own event loop polls. It is made when it is first
 * asked for and stays the same; what is behind it changes with the connection.
 */

#include "client.h"

/** loop_watch() - the client has a socket: it belongs to what is polled. Return: 0, or a negative errno. */
int loop_watch(gpuq_client *client);
/** loop_unwatch() - the socket is about to be closed, of which a child may hold a copy. */
void loop_unwatch(gpuq_client *client);
/** loop_watch_timer() - the same for client->resume's timer. Return: 0, or a negative errno. */
int loop_watch_timer(gpuq_client *client);
/** loop_update() - is there something to write? Whoever polls learns of room for it only if asked for. */
void loop_update(gpuq_client *client);
/** loop_close() - the descriptor is no more. */
void loop_close(gpuq_client *client);

#endif
