/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_CONNECT_H
#define GPUQ_LINK_CONNECT_H

/*
 * Connect
 *
 * Opens a socket at a path and describes the client in its Hello. The first connection of a client
 * and every later one use it.
 */

#include "proto/gpuq.pb-c.h"

#define CONNECT_VERSION  1  /* of the protocol, the only one so far */
#define CONNECT_NAME_MAX 64 /* bytes of the program's name, of the protocol */

/**
 * connect_open() - a socket that is connected, and does not block from then on
 * @wait_ms: while the daemon accepts nobody; 0: -EAGAIN then
 *
 * Return: 0, or a negative errno.
 */
int connect_open(const char *path, unsigned wait_ms, int *ret_fd);
/** connect_fill_hello() - @name: memory for the program's name, which @hello then points to. */
void connect_fill_hello(Gpuq__V1__Hello *hello, char name[static CONNECT_NAME_MAX + 1]);

#endif
