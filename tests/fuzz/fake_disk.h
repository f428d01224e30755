/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_DISK_H
#define GPUQ_FUZZ_DISK_H

/*
 * Disk
 *
 * The supervisor's, in this thread: each call it wants to make waits until it is its turn.
 */

#include <stdbool.h>

#include "disk.h"

/** disk_turn() - the next call is made, and done. Return: false: none waits. */
bool disk_turn(void);

#endif
