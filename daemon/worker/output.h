/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_OUTPUT_H
#define GPUQ_WORKER_OUTPUT_H

/*
 * Output
 *
 * The driver writes kernels' output to this process's stdout, and failed assertions to its stderr. Both
 * descriptors are memfds of a fixed size, which are read after the kernels that wrote to them. The
 * worker's own log lines pass through stderr too, and are forwarded to its original destination.
 */

#include <stdbool.h>

#define OUTPUT_MAX (1u << 20) /* bytes kept of each */

typedef struct Output {
        int out, err;   /* the memfds */
        int stderr_was; /* the process's original stderr */
} Output;

/** output_open() - replace stdout and stderr by the memfds. Return: 0 or a negative errno. */
int output_open(Output *output);
/** output_take() - the output since the last call. @ret_text: NULL if none; the caller's. Return: 0 or -ENOMEM. */
int output_take(Output *output, char **ret_text);
/** output_take_errors() - the same for stderr. */
int output_take_errors(Output *output, char **ret_text);
/** output_forward() - forward the content of stderr. */
void output_forward(Output *output);

#endif
