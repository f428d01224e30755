/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_LINK_H
#define GPUQ_KEEPER_LINK_H

/*
 * Link
 *
 * The keeper's end of the socket to one supervisor: KeeperMessages with descriptors, never
 * blocking. Messages that do not fit into the socket wait in a queue here. Its length is limited,
 * not counting the descriptors that a new supervisor gets at its start: a supervisor that requests
 * much and reads nothing is faulty.
 */

#include <stdbool.h>

#include "keeper/protocol.h"

enum {
        _LINK_E_SUCCESS,
        LINK_E_AGAIN,
        LINK_E_CLOSED,
        LINK_E_BROKEN, /* the supervisor sent what is no KeeperMessage */
};

#define LINK_RETRY_MS 20u

typedef struct Link Link;

/** link_new() - make the pair. @ret_peer: the supervisor's end, the caller's. Return: 0 or a negative errno. */
int link_new(Link **ret_link, int *ret_peer);
/** link_free() - NULL is fine. Return: NULL. */
Link *link_free(Link *link);

/** link_fd() - for polling. */
int link_fd(const Link *link);
/** link_is_waiting() - whether something is to be sent once writable. */
bool link_is_waiting(const Link *link);
/**
 * link_is_refused() - whether something is to be sent though it is writable: the kernel lacked memory,
 * or refused a descriptor; try again after LINK_RETRY_MS
 */
bool link_is_refused(const Link *link);

/** link_queue() - send a message, now or later. @fd: -1, or duplicated. Return: 0; -ENOBUFS: it does not read; or another negative errno. */
int link_queue(Link *link, const KeeperMessage *message, int fd);
/** link_flush() - send what waits. Return: 0, LINK_E_AGAIN, LINK_E_CLOSED or a negative errno. */
int link_flush(Link *link);
/**
 * link_receive() - one message, its text surely terminated
 * @ret_fds: the caller's, all of them; unused ones are -1
 *
 * Return: 0, LINK_E_AGAIN, LINK_E_CLOSED, LINK_E_BROKEN or a negative errno.
 */
int link_receive(Link *link, KeeperMessage *ret_message, int ret_fds[static KEEPER_N_FDS],
                 unsigned *ret_n_fds);

#endif
