/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KEEPER_LINK_H
#define GPUQ_SUPERVISOR_KEEPER_LINK_H

/*
 * Keeper link
 *
 * The socket to the keeper: fixed structs, descriptors beside them. Sending keeps
 * its order and does not block, but for what is to be kept: what does not go at once
 * waits here, and would be lost with us. All functions that send accept NULL, for
 * tests without a keeper.
 */

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
/** keeper_link_keep() - hold this descriptor for us: from now on, whatever becomes of us; a keeper that reads nothing is waited for 5 s. */
void keeper_link_keep(KeeperLink *link, const char *key, int fd);
/** keeper_link_drop() - no more. */
void keeper_link_drop(KeeperLink *link, const char *key);
/** keeper_link_kill() - this worker. */
void keeper_link_kill(KeeperLink *link, uint32_t worker);

#endif
