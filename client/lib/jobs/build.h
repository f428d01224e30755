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
 * If operations cannot be appended, they and the buffers and kernels that they added are removed again. A
 * buffer of an earlier operation may stay INOUT because of it, which costs only a copy.
 */
typedef struct BuildMark {
        size_t n_buffers;
        size_t n_kernels;
        size_t n_settled;
        size_t n_apart;      /* pairs */
        size_t n_operations; /* bytes */
} BuildMark;

/** build_mark() - before one or more operations. */
BuildMark build_mark(const gpuq_job *job);
/** build_leave() - go back to @mark if @r is an error, and give the lock back. Return: @r. */
int build_leave(gpuq_job *job, BuildMark mark, int r);

/** build_buffer() - the job's index of a buffer that the operation uses with this direction.
 * Return: 0, or a GPUQ_E_. */
int build_buffer(gpuq_job *job, gpuq_buffer *buffer, gpuq_direction direction, uint32_t *ret_index);
/**
 * build_kernel() - the job's index of a kernel or variable
 * @owned: @name is copied; else it lives as long as the module
 *
 * Return: 0, or a GPUQ_E_.
 */
int build_kernel(gpuq_job *job, gpuq_module *module, const char *name, bool owned,
                 uint32_t *ret_index);
/** build_append() - pack an operation. Return: 0, or a GPUQ_E_. */
int build_append(gpuq_job *job, const Gpuq__V1__Operation *operation);
/**
 * build_launch() - append a launch: gpuq_job_launch() with the lock held
 *
 * Return: 0, or a GPUQ_E_.
 */
int build_launch(gpuq_job *job, gpuq_module *module, const char *name, const gpuq_config *config,
                 const gpuq_arg *args, size_t n_args);
/** build_begin() - reserve memory for an operation of at most this many bytes. Return: 0, or a
 * GPUQ_E_. */
int build_begin(gpuq_job *job, size_t n_bytes, uint8_t **ret_p);
/** build_end() - the operation was packed there, as an element of Operations, and ends at @end. */
void build_end(gpuq_job *job, const uint8_t *end);

#endif
