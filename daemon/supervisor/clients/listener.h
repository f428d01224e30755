/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LISTENER_H
#define GPUQ_SUPERVISOR_LISTENER_H

/*
 * Listener
 *
 * Accepts a few connections in each turn of the loop and asks the kernel once for the peer's
 * identity. When no descriptor is left, it uses a reserve descriptor to refuse one connection and
 * pauses, so that connected clients are still served.
 */

#define LISTENER_PAUSE_MS 200u
#define LISTENER_BURST    4u /* connections accepted in one turn of the loop */
#define LISTENER_GROUPS                                                                            \
        1024u /* none is accepted in that turn after their peers' groups are so many */

typedef struct Listener Listener;
typedef struct Clients Clients;

/** listener_new() - on a listening socket, consumed on success. Return: 0, or a negative errno. */
int listener_new(Clients *clients, int fd, Listener **ret_listener);
/** listener_close() - freed once the loop has run; NULL is fine. Return: NULL. */
Listener *listener_close(Listener *listener);
/** listener_start() - start accepting. */
void listener_start(Listener *listener);

#endif
