/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_LAUNCH_H
#define GPUQ_CPU_LAUNCH_H

/*
 * Launch
 *
 * A kernel with its geometry and arguments. The stream's thread and the context's helpers take
 * blocks in their order, so a block may wait for an earlier one. Blocks that wait for later ones
 * must be launched cooperatively or as a cluster.
 */

#include "driver/cpu/module.h"
#include "driver/cpu/work.h"

/* How to run a kernel: what launches and nodes of graphs have in common. */
typedef struct LaunchShape {
        GpuqCpuIndex grid, block, cluster;
        uint32_t shared_bytes;
        bool cooperative;
        bool has_priority;
        int priority;
} LaunchShape;

typedef struct LaunchWork {
        Work work;
        Function *function;
        LaunchShape shape;
        uint64_t n_blocks;
        void **params; /* into data; of a twin, a row after the other */
        char *data;
} LaunchWork;

/**
 * launch_work_new() - check a launch and copy its arguments
 *
 * Return: 0, or why it cannot be launched.
 */
CUresult launch_work_new(Function *function, const LaunchShape *shape, void **params,
                         Work **ret_work);
/** launch_attribute() - put an attribute into a shape. Return: CUDA_ERROR_INVALID_VALUE. */
CUresult launch_attribute(LaunchShape *shape, CUlaunchAttributeID id,
                          const CUlaunchAttributeValue *value);

#endif
