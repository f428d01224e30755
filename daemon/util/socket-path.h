/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_SOCKET_PATH_H
#define GPUQ_UTIL_SOCKET_PATH_H

/*
 * The socket that a client connects to if it names none
 */

#include <limits.h>

/** socket_path_default() - as gpuq(1) describes it. Return: the path, in @memory or elsewhere. */
const char *socket_path_default(char memory[static PATH_MAX]);
/** socket_path_hint() - how to start a gpuqd that socket_path_default() finds, in quotes. */
const char *socket_path_hint(void);

#endif
