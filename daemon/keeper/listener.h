/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_LISTENER_H
#define GPUQ_KEEPER_LISTENER_H

/*
 * Listener
 *
 * The listening socket: systemd's, or our own at a path, which is removed when the listener is
 * freed.
 */

#include <stdbool.h>

typedef struct Listener Listener;

/**
 * listener_new() - take systemd's socket if it passed one, else make one at @path
 * @is_private: mode 0600 instead of 0666: who may connect is the supervisor's business otherwise
 *
 * Return: 0, or a negative errno with @ret_error, the caller's text.
 */
int listener_new(const char *path, bool is_private, Listener **ret_listener, char **ret_error);
/** listener_free() - close, and remove the path if we made it and it is still ours; NULL is fine. Return: NULL. */
Listener *listener_free(Listener *listener);
/** listener_fd() - the socket. */
int listener_fd(const Listener *listener);
/** listener_path() - where it is, or "systemd's socket". */
const char *listener_path(const Listener *listener);

#endif
