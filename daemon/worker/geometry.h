/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_GEOMETRY_H
#define GPUQ_WORKER_GEOMETRY_H

/*
 * Geometry
 *
 * Checks that a launch's grid, block, clusters and shared memory fit the device and the kernel. Each
 * refusal names the limit.
 */

#include "worker/image.h"

typedef struct ProgramLaunch {
        Function *function;
        unsigned grid[3], block[3];
        unsigned cluster[3]; /* all 0: none */
        unsigned shared_bytes;
        bool cooperative;
        void **values; /* as cuLaunchKernelEx takes them */
} ProgramLaunch;

/**
 * geometry_check() - check and fill in a launch whose function is set
 *
 * Allows the function the dynamic shared memory it needs. Return: 0,
 * FAILURE_E_SET, or FAILURE_E_FAULT.
 */
int geometry_check(ProgramLaunch *launch, const Gpuq__V1__Launch *message, const Context *context,
                   Failure *failure);

#endif
