/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LISTENER_H
#define GPUQ_SUPERVISOR_LISTENER_H

/*
 * Listener
 *
 * Accepts connections and asks the kernel, once, who is there. With no
 * descriptor left it turns one away by means of a reserve and pauses, so that
 * those who are connected are served on.
 */

#define LISTENER_PAUSE_MS 200u
#define LISTENER_BURST    64u /* connections accepted in one go */

typedef struct Listener Listener;
typedef struct Clients Clients;

/** listener_new() - on a listening socket, consumed on success. Return: 0, or a negative errno. */
int listener_new(Clients *clients, int fd, Listener **ret_listener);
/** listener_close() - freed once the loop has run; NULL is fine. Return: NULL. */
Listener *listener_close(Listener *listener);
/** listener_configure() - another configuration holds; NULL is fine. */
void listener_configure(Listener *listener);
/** listener_start() - accept from now on. */
void listener_start(Listener *listener);

#endif
