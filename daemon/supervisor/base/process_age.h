/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PROCESS_AGE_H
#define GPUQ_SUPERVISOR_PROCESS_AGE_H

/*
 * Process age
 *
 * The kernel reuses process numbers. A number together with the process's start time is unique.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** process_age_start() - the start time, in the kernel's ticks. Return: 0: the process is not visible. */
uint64_t process_age_start(pid_t pid);
/** process_age_is_alive() - whether @pid is still the process that started at @start; 0: its start is unknown. */
bool process_age_is_alive(pid_t pid, uint64_t start);

#endif
