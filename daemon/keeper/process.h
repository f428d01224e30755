/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_PROCESS_H
#define GPUQ_KEEPER_PROCESS_H

/*
 * Process
 *
 * Starts a program as another user: in a session of its own, with exactly the given environment
 * and descriptors, and with default signal handlers. The kernel kills it when the keeper dies.
 *
 * The keeper never waits for it. The forked child itself determines its user, groups and program,
 * so a slow name service or disk delays only that process.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "keeper/identity.h"
#include "keeper/words.h"

#define PROCESS_N_FDS     8
#define PROCESS_PREPARE_S 30 /* from fork() to exec(); then the child gives up */

enum {
        _PROCESS_E_SUCCESS,
        PROCESS_E_STARTING, /* neither runs nor has failed to */
};

typedef struct ProcessPlan {
        char *path; /* NULL: nothing is executed; what fills in the plan has done the work */
        Words argv;
        Words env;
        Identity *identity; /* NULL: as we are */
        bool no_new_privs;
        bool may_change_user; /* later, by itself */
        bool may_raise;       /* its priority, as far as we may: it runs no code of users */
        int output;           /* becomes its standard output and error; 0: it has ours */
} ProcessPlan;

/*
 * Fills in the plan, in the child: may look up names and make folders, and may take long.
 *
 * Return: 0 or a negative errno, with @ret_error or NULL.
 */
typedef int (*ProcessMake)(const void *what, ProcessPlan *plan, char **ret_error);

typedef struct Process {
        pid_t pid;
        int report; /* readable once the program runs or has failed to start; -1: that was read */
} Process;

#define PROCESS_NONE ((Process){.report = -1})

/**
 * process_start() - fork
 * @fds: @n_fds of them, which become 3, 4, …; up to PROCESS_N_FDS
 *
 * Return: 0 or a negative errno.
 */
int process_start(ProcessMake make, const void *what, const int *fds, unsigned n_fds,
                  Process *ret_process);
/**
 * process_check() - whether the program runs; does not wait
 * @ret_error: on failure, what could not be done, the caller's; NULL if out of memory
 *
 * Return: 0: it was executed; PROCESS_E_STARTING; or a negative errno: it failed, and its process
 * exits with status 127. What was returned once is not told again.
 */
int process_check(Process *process, char **ret_error);
/** process_finish() - forget it, whether it has ended or not; the struct itself is the caller's memory. */
void process_finish(Process *process);

#endif
