/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CHECK_H
#define GPUQ_WORKER_CHECK_H

/*
 * Device check
 *
 * Whether one device is well: a context, some memory written and read back, and
 * NVML's word. Of its own process, which ends after it.
 */

#include "worker/worker.h"

/**
 * check_run() - at the device of options->uuid
 *
 * Return: 0: it is well; FAILURE_E_SET: it is not if failure->is_device, else the look
 * came to nothing.
 */
int check_run(const WorkerOptions *options, Driver **ret_driver, Failure *failure);

#endif
