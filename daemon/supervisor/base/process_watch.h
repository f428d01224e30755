/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROCESS_WATCH_H
#define GPUQ_SUPERVISOR_PROCESS_WATCH_H

/*
 * Process watch
 *
 * Calls back when a process has exited. Watching its socket is not enough: a forked child may hold
 * a copy of it. Each watch is a pidfd in the loop.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

typedef struct ProcessWatch ProcessWatch;

/** Called once; the callee may free the watch. */
typedef void (*ProcessWatchFunc)(void *userdata);

/**
 * process_watch_peer() - watch the process that connected a Unix socket
 * @pid: the same process, for kernels without SO_PEERPIDFD
 *
 * Return: 0; -ESRCH: it has exited; -ENODATA: the kernel does not know it; another negative errno.
 */
int process_watch_peer(uv_loop_t *loop, int socket, pid_t pid, ProcessWatchFunc func,
                       void *userdata, ProcessWatch **ret_watch);
/**
 * process_watch_pid() - watch the process with this number
 * @start: from process_age_start(), so that a later process with the same number is not mistaken
 * for it
 *
 * Return: 0; -ESRCH: it has exited; or another negative errno.
 */
int process_watch_pid(uv_loop_t *loop, pid_t pid, uint64_t start, ProcessWatchFunc func,
                      void *userdata, ProcessWatch **ret_watch);
/** process_watch_has_exited() - whether the process has, although the callback has still to come. */
bool process_watch_has_exited(const ProcessWatch *watch);
/** process_watch_free() - no callback comes after this; NULL is fine. Return: NULL. */
ProcessWatch *process_watch_free(ProcessWatch *watch);

#endif
