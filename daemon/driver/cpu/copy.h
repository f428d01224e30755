/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_COPY_H
#define GPUQ_CPU_COPY_H

/*
 * Copy
 *
 * Copies and fills, in streams and graphs. Addresses of the device are checked
 * when a call is made; memory that was unmapped since is a fault when it is run.
 */

#include "driver/cpu/work.h"

/** copy_work_new() - a linear copy of up to three dimensions. Return: CUDA_ERROR_INVALID_VALUE. */
CUresult copy_work_new(const CUDA_MEMCPY3D *copy, Work **ret_work);
/** copy_fill_new() - a fill. Return: CUDA_ERROR_INVALID_VALUE. */
CUresult copy_fill_new(const CUDA_MEMSET_NODE_PARAMS *fill, Work **ret_work);

#endif
