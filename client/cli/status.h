/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_STATUS_H
#define GPUQ_CLI_STATUS_H

/*
 * Status
 *
 * The text of `gpuq status`: devices, users, and the caller's own limits. With verbose, it also has
 * what maintainers need: workers, counters, and the limits of other users.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <gpuq.h>

/** status_write() - fitted to @width columns; 0: complete. Return: 0 or -ENOMEM. */
int status_write(FILE *stream, const gpuq_status *status, bool is_verbose, size_t width);

#endif
