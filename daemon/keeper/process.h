/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_PROCESS_H
#define GPUQ_KEEPER_PROCESS_H

/*
 * Process
 *
 * Starts a program as another user: in a session of its own, with exactly the given
 * environment and descriptors and default signal handlers. The kernel kills it when
 * the keeper dies. Waits until the program runs or has failed to start.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "keeper/identity.h"

typedef struct ProcessPlan {
        const char *path;
        char *const *argv;
        char *const *env;
        const Identity *identity; /* NULL: as we are */
        const int *fds;           /* become 3, 4, … */
        unsigned n_fds;           /* up to PROCESS_N_FDS */
        bool no_new_privs;
} ProcessPlan;

#define PROCESS_N_FDS 8

/**
 * process_start() - fork and exec
 * @ret_error: on failure, what could not be done, the caller's; NULL if out of memory
 *
 * Return: 0 or a negative errno.
 */
int process_start(const ProcessPlan *plan, pid_t *ret_pid, char **ret_error);

#endif
