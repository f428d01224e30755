/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_EXPLAIN_H
#define GPUQ_CLI_EXPLAIN_H

/*
 * Explain
 *
 * The text of `gpuq explain`: where a job's time went beside the median of its kernel, and one advice.
 */

#include <stddef.h>
#include <stdio.h>

#include <gpuq.h>

/** explain_write() - fitted to @width columns; 0: complete. Return: 0 or -ENOMEM. */
int explain_write(FILE *stream, const gpuq_explanation *explanation, size_t width);

#endif
