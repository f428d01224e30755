/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_BUILD_H
#define GPUQ_JOBS_BUILD_H

/*
 * Build
 *
 * Helpers that append operations to a job. All are called with the lock held.
 */

#include "job.h"

/**
 * BuildMark - a position to roll back to
 *
 * An operation that could not be appended takes back the buffers and kernels it
 * added. A buffer that was there may stay INOUT for it: that costs a copy, no more.
 */
typedef struct BuildMark {
        size_t n_buffers;
        size_t n_kernels;
} BuildMark;

/** build_mark() - before an operation. */
BuildMark build_mark(const gpuq_job *job);
/** build_leave() - go back to @mark if @r is an error, and give the lock back. Return: @r. */
int build_leave(gpuq_job *job, BuildMark mark, int r);

/** build_buffer() - the job's index of a buffer, which the operation uses so. Return: 0, or a GPUQ_E_. */
int build_buffer(gpuq_job *job, gpuq_buffer *buffer, gpuq_direction direction, uint32_t *ret_index);
/**
 * build_kernel() - the job's index of a kernel or variable
 * @owned: @name is copied; else it lives as long as the module
 *
 * Return: 0, or a GPUQ_E_.
 */
int build_kernel(gpuq_job *job, gpuq_module *module, const char *name, bool owned,
                 uint32_t *ret_index);
/** build_begin() - room behind the other operations for one of at most so many bytes. Return: 0, or a GPUQ_E_. */
int build_begin(gpuq_job *job, size_t n_bytes, uint8_t **ret_p);
/** build_end() - it was packed there, as an element of Operations, and ends at @end. */
void build_end(gpuq_job *job, const uint8_t *end);

#endif
