/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_LIBRARY_H
#define GPUQ_CLI_LIBRARY_H

/*
 * Library
 *
 * The library operations that `gpuq run library:OPERATION' knows, on arrays from the command line: products and
 * transforms, and those of series.h.
 */

#include "operand.h"

/** library_check() - check an operation's name and its arguments, before any data is read. Return: 0 or an exit code. */
int library_check(const char *operation, const Operand *operands, size_t n_operands,
                  Problem *problem);
/**
 * library_append() - append a checked operation to a job
 * @builtin: the built-in module, whose kernel scales inverse transforms
 *
 * Return: 0 or a negative GPUQ_E_.
 */
int library_append(gpuq_job *job, gpuq_module *builtin, const char *operation,
                   const Operand *operands, size_t n_operands);

#endif
