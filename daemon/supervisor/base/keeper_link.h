/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KEEPER_LINK_H
#define GPUQ_SUPERVISOR_KEEPER_LINK_H

/*
 * Keeper link
 *
 * The socket to the keeper: fixed structs, descriptors beside them. Sending keeps
 * its order and does not block: what does not go at once waits here, and would be lost
 * with the supervisor. Nobody may be told of a descriptor that waits: clients_flush()
 * sends nothing while the link is behind. All functions accept NULL, for tests without
 * a keeper.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "keeper/protocol.h"

#define KEEPER_LINK_FDS_MAX 4u

typedef struct KeeperLink KeeperLink;

/** Takes over @fds; closes what it does not use. */
typedef void (*KeeperLinkReceive)(const KeeperMessage *message, int *fds, size_t n_fds,
                                  void *userdata);
/** The keeper is gone. */
typedef void (*KeeperLinkEnd)(void *userdata);

/** keeper_link_new() - on socket @fd, consumed on success. Return: 0, or a negative errno. */
int keeper_link_new(uv_loop_t *loop, int fd, KeeperLinkReceive receive, KeeperLinkEnd end,
                    void *userdata, KeeperLink **ret_link);
/** keeper_link_close() - freed once the loop has run; NULL is fine. Return: NULL. */
KeeperLink *keeper_link_close(KeeperLink *link);
/** keeper_link_send() - @fds stay the caller's. Return: 0, or -ENOMEM or another negative errno. */
int keeper_link_send(KeeperLink *link, const KeeperMessage *message, const int *fds, size_t n_fds);
/** keeper_link_keep() - hold this descriptor, which stays the caller's, for the next supervisor. */
void keeper_link_keep(KeeperLink *link, const char *key, int fd);
/** keeper_link_is_behind() - a descriptor to be kept has not been sent yet. The loop wakes up once it has. */
bool keeper_link_is_behind(const KeeperLink *link);
/** keeper_link_drop() - no more. */
void keeper_link_drop(KeeperLink *link, const char *key);
/** keeper_link_kill() - this worker. */
void keeper_link_kill(KeeperLink *link, uint32_t worker);

#endif
