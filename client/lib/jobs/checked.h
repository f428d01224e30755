/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_CHECKED_H
#define GPUQ_JOBS_CHECKED_H

/*
 * Checked jobs
 *
 * A checked job runs kernels of checked modules: the same images, which the daemon compiles again
 * with --check. Such a module is loaded for the first job that needs it, and kept with the original.
 */

#include "job.h"

/**
 * checked_prepare() - if the job is checked, replace its modules by checked ones
 *
 * Gives up the lock while a module is loaded. Return: 0, or an error of gpuq_module_load().
 */
int checked_prepare(gpuq_job *job);

#endif
