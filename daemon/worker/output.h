/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_OUTPUT_H
#define GPUQ_WORKER_OUTPUT_H

/*
 * Output
 *
 * What kernels print goes to this process's stdout, and what a failed assert
 * says to its stderr, put there by the driver. Both descriptors are memfds of a
 * fixed size here, read after the kernels that wrote. The worker's own log lines
 * pass through stderr too and are handed on to where it was.
 */

#include <stdbool.h>

#define OUTPUT_MAX (1u << 20) /* bytes kept of each */

typedef struct Output {
        int out, err;   /* the memfds */
        int stderr_was; /* the process's own */
} Output;

/** output_open() - put the memfds in the places of stdout and stderr. Return: 0 or a negative errno. */
int output_open(Output *output);
/** output_take() - what was printed since the last call. @ret_text: NULL if nothing; the caller's. Return: 0 or -ENOMEM. */
int output_take(Output *output, char **ret_text);
/** output_take_errors() - the same of stderr. */
int output_take_errors(Output *output, char **ret_text);
/** output_forward() - hand what is in stderr on to where it was. */
void output_forward(Output *output);

#endif
