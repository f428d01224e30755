/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_WAITING_H
#define GPUQ_CLI_WAITING_H

/*
 * Waiting
 *
 * Tells the user on stderr, once, what a module or a job waits for if it takes longer than a second. A
 * thread with a connection of its own asks the daemon, since the program's own connection may be waiting
 * in a call.
 */

#include <stdint.h>

typedef struct Waiting Waiting;

/**
 * waiting_begin() - a wait begins
 * @socket: as for gpuq_connect(); must stay as it is
 * @module: the name of the module that is being loaded; NULL: the wait is for a job
 * @job:    its id
 *
 * Return: for waiting_end(); NULL: nothing will be told.
 */
Waiting *waiting_begin(const char *socket, const char *module, uint64_t job);
/** waiting_end() - it is over. Does not wait for the thread, which frees the rest. */
void waiting_end(Waiting *waiting);

#endif
