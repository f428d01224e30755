/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KEEPER_LINK_H
#define GPUQ_SUPERVISOR_KEEPER_LINK_H

/*
 * Keeper link
 *
 * The socket to the keeper. It carries fixed structs with descriptors beside them. Sending keeps
 * the order and does not block: a message that the socket cannot take at once is queued here, and
 * would be lost with the supervisor. Clients must not learn of a queued descriptor, so a reply that
 * names one waits until keeper_link_has_sent(). All functions accept NULL, for tests without a
 * keeper.
 *
 * The kernel refuses descriptors while too many of this uid are unread by others (ETOOMANYREFS), and
 * reports no end of that: the link tries again every KEEPER_LINK_RETRY_MS. The status, which shows
 * the keeper that the supervisor is alive, overtakes what waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "keeper/protocol.h"

#define KEEPER_LINK_FDS_MAX  4u
#define KEEPER_LINK_RETRY_MS 20u

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
/**
 * keeper_link_keep() - the keeper holds a copy of @fd, which stays the caller's, for the next supervisor
 *
 * Return: the position of this, for keeper_link_has_sent().
 */
uint64_t keeper_link_keep(KeeperLink *link, const char *key, int fd);
/** keeper_link_position() - of the last descriptor that was to be kept. */
uint64_t keeper_link_position(const KeeperLink *link);
/**
 * keeper_link_has_sent() - the keeper will find the descriptor of this position, whoever dies
 *
 * The loop wakes up when more has been sent.
 */
bool keeper_link_has_sent(const KeeperLink *link, uint64_t position);
/** keeper_link_drop() - the keeper closes its copy. */
void keeper_link_drop(KeeperLink *link, const char *key);
/** keeper_link_kill() - the keeper kills this worker. */
void keeper_link_kill(KeeperLink *link, uint32_t worker);

#endif
