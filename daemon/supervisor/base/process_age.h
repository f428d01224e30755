/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROCESS_AGE_H
#define GPUQ_SUPERVISOR_PROCESS_AGE_H

/*
 * Process age
 *
 * A process's number comes back; with the moment of its start it does not.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** process_age_start() - when it began, in the kernel's ticks. Return: 0: it cannot be seen. */
uint64_t process_age_start(pid_t pid);
/** process_age_is_alive() - is it still the process that began at @start, 0 if that was not seen? */
bool process_age_is_alive(pid_t pid, uint64_t start);

#endif
