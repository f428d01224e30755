/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_WORKER_H
#define GPUQ_KEEPER_WORKER_H

/*
 * Workers
 *
 * The worker processes that run, by the supervisor's id. Starting one decides
 * its user, its environment and its cache folder; ending one ends its whole
 * process group, compilers included.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "keeper/protocol.h"
#include "util/config.h"

typedef struct Workers Workers;

/** workers_new() - @libexec and @is_private as in Options; borrowed. Return: 0 or -ENOMEM. */
int workers_new(const char *libexec, bool is_private, Workers **ret_workers);
/** workers_free() - there are none left, or the kernel ends them with us; NULL is fine. Return: NULL. */
Workers *workers_free(Workers *workers);

/**
 * workers_spawn() - start one
 * @message: KEEPER_SPAWN
 * @ret_error: on failure why, the caller's; NULL if out of memory
 *
 * Return: 0 or a negative errno.
 */
int workers_spawn(Workers *workers, const Config *config, const KeeperMessage *message,
                  const int fds[static KEEPER_N_FDS], pid_t *ret_pid, char **ret_error);
/** workers_kill() - SIGKILL to the process group of that id, if it is there. */
void workers_kill(Workers *workers, uint32_t id);
/** workers_kill_all() - and forget their ids: their supervisor is gone, or we end. */
void workers_kill_all(Workers *workers);
/** workers_reaped() - a child has ended. Return: whether it was a worker whose supervisor is there; its id is in @ret_id. */
bool workers_reaped(Workers *workers, pid_t pid, uint32_t *ret_id);
/** workers_count() - that have not been reaped. */
size_t workers_count(const Workers *workers);

#endif
