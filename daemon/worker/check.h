/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CHECK_H
#define GPUQ_WORKER_CHECK_H

/*
 * Device check
 *
 * Whether one device is well: creates a context, writes and reads some memory, and asks NVML. It runs
 * in a process of its own, which ends afterwards.
 */

#include "worker/worker.h"

/**
 * check_run() - check the device of options->uuid
 *
 * Return: 0: it is well, and has memory for a worker's context; FAILURE_E_SET: it is broken if
 * failure->is_device; it has no such memory with E_MEMORY; else the check itself failed.
 */
int check_run(const WorkerOptions *options, Driver **ret_driver, Failure *failure);

#endif
