/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_TWIN_H
#define GPUQ_CPU_TWIN_H

/*
 * Twin
 *
 * Twins of kernels (compiler/batch.h) for images of this driver. They need no compiled code: a
 * twin runs its kernel with the arguments of each row. As on a GPU, modules that print or have
 * variables get none.
 */

#include "driver/cpu/module.h"

/** twin_add() - append the twins of a module's functions. @image: what was loaded. Return: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult twin_add(Module *module, const void *image);
/** twin_check_grid() - whether a twin can be launched so: it has rows, and blocks that are alone. */
bool twin_check_grid(const Function *twin, GpuqCpuIndex grid, bool alone);

/** twin_rows() - the arguments of @n_rows, one array after the other, in @table. Return: NULL if there is no memory. */
void **twin_rows(const Function *twin, char *table, uint32_t n_rows);

#endif
