/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_SPARE_H
#define GPUQ_WORKER_SPARE_H

/*
 * Spare
 *
 * A worker that has its CUDA context before its user is known, because making a context takes
 * 0.3 to 0.9 s. It starts as root with two capabilities, CAP_SETUID and CAP_SETGID, so neither the
 * kernel nor NVIDIA's driver gives it more rights than other workers (the driver asks for
 * CAP_SYS_ADMIN). Until the keeper tells it whom it serves, it reads nothing of any user or of the
 * supervisor. Then it becomes that user, which takes both capabilities from all of its threads, and
 * it checks each thread before it runs anything.
 */

#include <stdbool.h>

#include "util/assignment.h"

/** spare_limit_rights() - before any library is loaded. Return: 0 or a negative errno. */
int spare_limit_rights(void);
/**
 * spare_become() - be the worker that was assigned
 * @ret_problem: on failure what could not be done, a constant
 *
 * Return: 0, or a negative errno: this process must exit.
 */
int spare_become(const Assignment *assignment, const char **ret_problem);

#endif
