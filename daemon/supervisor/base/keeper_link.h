/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KEEPER_LINK_H
#define GPUQ_SUPERVISOR_KEEPER_LINK_H

/*
 * Keeper link
 *
 * The socket to the keeper. It carries fixed structs with descriptors beside them. Sending keeps
 * the order and does not block: a message that the socket cannot take at once is queued here, and
 * would be lost with the supervisor. Clients must not learn of a queued descriptor, so
 * clients_flush() sends nothing while the link is behind. All functions accept NULL, for tests
 * without a keeper.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "keeper/protocol.h"

#define KEEPER_LINK_FDS_MAX 4u

typedef struct KeeperLink KeeperLink;

/** Takes ownership of @fds; closes those that it does not use. */
typedef void (*KeeperLinkReceive)(const KeeperMessage *message, int *fds, size_t n_fds,
                                  void *userdata);
/** The keeper has closed the connection. */
typedef void (*KeeperLinkEnd)(void *userdata);

/** keeper_link_new() - use socket @fd, consumed on success. Return: 0, or a negative errno. */
int keeper_link_new(uv_loop_t *loop, int fd, KeeperLinkReceive receive, KeeperLinkEnd end,
                    void *userdata, KeeperLink **ret_link);
/** keeper_link_close() - the loop frees the link in a later turn; NULL is fine. Return: NULL. */
KeeperLink *keeper_link_close(KeeperLink *link);
/** keeper_link_send() - @fds stay the caller's. Return: 0, or -ENOMEM or another negative errno. */
int keeper_link_send(KeeperLink *link, const KeeperMessage *message, const int *fds, size_t n_fds);
/** keeper_link_keep() - the keeper holds a copy of @fd, which stays the caller's, for the next supervisor. */
void keeper_link_keep(KeeperLink *link, const char *key, int fd);
/**
 * keeper_link_is_behind() - a descriptor for the keeper has not been sent yet
 *
 * The loop wakes up when it has been.
 */
bool keeper_link_is_behind(const KeeperLink *link);
/** keeper_link_drop() - the keeper closes its copy. */
void keeper_link_drop(KeeperLink *link, const char *key);
/** keeper_link_kill() - the keeper kills this worker. */
void keeper_link_kill(KeeperLink *link, uint32_t worker);

#endif
