/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_LOOP_H
#define GPUQ_LINK_LOOP_H

/*
 * Loop
 *
 * The descriptor that a user's own event loop polls. It is created when the user first asks for it
 * and stays the same; the descriptors behind it change with the connection.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

typedef struct Loop {
        int epoll_fd;       /* what gpuq_client_fd() gives; -1 until asked for */
        int notify_fd;      /* eventfd: callbacks or a ring's bytes wait for a dispatching thread */
        int timer_fd;       /* of resume.h; -1 until it is needed first */
        int bell_fd;        /* of direct.h; -1: none */
        bool is_notified;   /* notify_fd tells of the ring */
        bool is_polled_out; /* the socket, for room to write */
} Loop;

/** loop_init() - nothing is open yet. */
void loop_init(Loop *loop);
/** loop_open() - make the descriptor. @wire: NULL: there is no socket now. Return: 0, or GPUQ_E_SYSTEM. */
int loop_open(Loop *loop, Wire *wire);
/** loop_close() - close the descriptor; the timer stays. */
void loop_close(Loop *loop);
/** loop_finish() - the timer, too. */
void loop_finish(Loop *loop);

/** loop_watch() - poll this socket, too. Return: 0, or a negative errno. */
int loop_watch(Loop *loop, Wire *wire);
/** loop_unwatch() - the socket is about to be closed, but a child may hold a copy of it. */
void loop_unwatch(Loop *loop, Wire *wire);
/** loop_poll_out() - whether to report free space in the socket, too. */
void loop_poll_out(Loop *loop, Wire *wire, bool out);

/** loop_set_bell() - poll this socket, too, and own it; -1: none any more. Return: 0, or a negative errno: it is closed. */
int loop_set_bell(Loop *loop, int fd);

/** loop_make_timer() - unless it is there. Return: 0, or a negative errno. */
int loop_make_timer(Loop *loop);
/** loop_set_timer() - 0: never. An earlier expiry is forgotten. */
void loop_set_timer(Loop *loop, int64_t at_us);

/** loop_notify() - make the descriptor readable, so that its user calls gpuq_dispatch(). */
void loop_notify(Loop *loop);
/** loop_notified() - gpuq_dispatch() was called. */
void loop_notified(Loop *loop);

#endif
