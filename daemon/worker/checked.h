/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CHECKED_H
#define GPUQ_WORKER_CHECKED_H

/*
 * Checked
 *
 * Jobs with kernels of a checked image (compiler/check.h): the worker tells the image which ranges
 * the job may access, and turns the record of an access outside into the job's failure. Jobs of one
 * image run one after the other, as all of them use its variable; other jobs run beside them.
 *
 * The shadows, which tell what was written of the buffers that the job only writes, are the end of the
 * job's scratch.
 */

#include "worker/job.h"

/** checked_is_free() - whether no other job in flight uses its images. */
bool checked_is_free(const Job *job);
/** checked_begin() - before its first step: issue ranges and shadows. Return: 0, FAILURE_E_SET, FAILURE_E_FAULT. */
int checked_begin(const Context *context, Job *job, CUstream stream, Failure *failure);
/** checked_tell() - before step @i: what its kernel reports, or what it writes. Return: likewise. */
int checked_tell(const Context *context, const Job *job, size_t i, CUstream stream,
                 Failure *failure);
/**
 * checked_end() - when its work is done: set its failure if an access was outside
 *
 * Return: 0, or FAILURE_E_FAULT.
 */
int checked_end(const Context *context, Job *job);

#endif
