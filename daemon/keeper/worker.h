/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_WORKER_H
#define GPUQ_KEEPER_WORKER_H

/*
 * Workers
 *
 * The worker processes that run, by the supervisor's id. Starting one decides
 * its user, its environment and its cache folder; ending one ends its whole
 * process group, compilers included. What becomes of each is told to the
 * supervisor.
 *
 * A spare worker is started as root, without capabilities but those to change its user, before it
 * is known whose jobs it will run (worker/spare.h). Assigning it to a user looks up and checks the same as
 * starting a worker does.
 *
 * An owned supervisor is bounded here: in how many workers are alive, of all users
 * and of one, and in how many it starts a second.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "keeper/protocol.h"
#include "util/config.h"

typedef struct Workers Workers;

/* To the supervisor: SPAWNED or EXITED. */
typedef void (*WorkersTell)(const KeeperMessage *message, void *userdata);

/** workers_new() - @libexec and @is_private as in Options; borrowed. Return: 0 or a negative errno. */
int workers_new(const char *libexec, bool is_private, WorkersTell tell, void *userdata,
                Workers **ret_workers);
/** workers_free() - there are none left, or the kernel ends them with us; NULL is fine. Return: NULL. */
Workers *workers_free(Workers *workers);

/** workers_fd() - readable: a worker that was started runs now, failed to, or wrote something: workers_on_started(). */
int workers_fd(const Workers *workers);
/** workers_hear_at() - when one that wrote too much may be heard again, in ms; UINT64_MAX: there is none. */
uint64_t workers_hear_at(const Workers *workers);
/** workers_hear_muted() - log more of what these wrote. */
void workers_hear_muted(Workers *workers, uint64_t now_ms);
/** workers_on_started() - tell of all of these, and log what workers write. */
void workers_on_started(Workers *workers);

/**
 * workers_spawn() - start one; what becomes of it is told, now or later
 * @message: KEEPER_SPAWN
 *
 * Return: false: the message breaks the rules.
 */
bool workers_spawn(Workers *workers, const Config *config, const KeeperMessage *message,
                   const int fds[static KEEPER_N_FDS], uint64_t now_ms);
/**
 * workers_assign() - a spare worker becomes a user's; if that fails, it is killed, and its end tells why
 * @message: KEEPER_ASSIGN; a worker that has ended meanwhile is fine
 *
 * Return: false: the message breaks the rules.
 */
bool workers_assign(Workers *workers, const Config *config, const KeeperMessage *message,
                    uint64_t now_ms);
/** workers_kill() - SIGKILL to the process group of that id, if it is there. */
void workers_kill(Workers *workers, uint32_t id);
/** workers_kill_all() - and forget their ids: their supervisor is gone, or we end. */
void workers_kill_all(Workers *workers);
/** workers_reaped() - a child has ended, with @status; if it was a worker, that is told. */
void workers_reaped(Workers *workers, pid_t pid, int status);
/** workers_has() - that process is a worker, or looks up a user for one. */
bool workers_has(const Workers *workers, pid_t pid);
/** workers_count() - that have not been reaped. */
size_t workers_count(const Workers *workers);

#endif
