/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_SERIES_H
#define GPUQ_CLI_SERIES_H

/*
 * Series
 *
 * The library operations of `gpuq run library:OPERATION' that work on all elements of arrays, in the order of the
 * file, and that gpuq's own kernels compute.
 */

#include "operand.h"

typedef struct SeriesOperation SeriesOperation;

/** series_find() - Return: NULL: there is no such operation. */
const SeriesOperation *series_find(const char *name);
/** series_name() - of operation @i, to list them. Return: NULL: there are no more. */
const char *series_name(size_t i);
/** series_check() - check the arguments, before any data is read. Return: 0 or an exit code. */
int series_check(const SeriesOperation *operation, const Operand *operands, size_t n_operands,
                 Problem *problem);
/** series_append() - append a checked operation to a job. Return: 0 or a negative GPUQ_E_. */
int series_append(gpuq_job *job, const SeriesOperation *operation, const Operand *operands,
                  size_t n_operands);

#endif
