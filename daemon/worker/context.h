/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CONTEXT_H
#define GPUQ_WORKER_CONTEXT_H

/*
 * Context
 *
 * The CUDA context of this worker, its scratch pool and what the device can
 * do. Touched by the loop's thread alone. Here, and nowhere else, a CUresult
 * becomes a Failure.
 */

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "worker/failure.h"

typedef struct ContextLimits {
        unsigned max_threads;  /* in a block */
        unsigned max_block[3]; /* threads in each direction */
        unsigned max_grid[3];  /* blocks in each direction */
        size_t max_shared;     /* bytes in a block, opted in for */
        unsigned n_multiprocessors;
        unsigned max_cluster; /* blocks; 0: the device has no clusters */
        bool cooperative;
} ContextLimits;

typedef struct Context {
        const Driver *cu;
        CUdevice device;
        CUcontext context;
        CUmemoryPool pool;
        ContextLimits limits;
        int priority_least, priority_greatest;
        size_t granularity; /* bytes, of exportable memory */
        char target[16];    /* for the compiler: "sm_90", "cpu" */
        char pci[32];
} Context;

/**
 * context_new() - cuInit and a context on a device, current in this thread
 * @cu: borrowed, outlives the context
 *
 * There is no way to free it: it ends with the process, since destroying one whose kernel faulted
 * or never ends would hang.
 *
 * Return: 0, FAILURE_E_SET, or -ENOMEM.
 */
int context_new(const Driver *cu, unsigned device, Context **ret_context, Failure *failure);
/** context_properties() - of exportable memory on this device. */
CUmemAllocationProp context_properties(const Context *context);

/** result_is_sticky() - whether every later call in this context fails too. */
bool result_is_sticky(CUresult result);
/** result_text() - "CUDA_ERROR_X: an x happened" into @text. Return: @text. */
const char *result_text(const Driver *cu, CUresult result, char *text, size_t n_text);
/**
 * result_check() - a CUresult as this project's own
 * @code: of a failure that is not sticky
 * @what: what was tried, for its text
 *
 * Return: 0, FAILURE_E_SET, or FAILURE_E_FAULT, whose text is CUDA's alone.
 */
int result_check(const Driver *cu, CUresult result, Gpuq__V1__Code code, const char *what,
                 Failure *failure);
/**
 * context_check() - result_check() of a call that a worker starts with
 *
 * Without memory it is E_MEMORY, for the device has no room for one more; else E_NO_DEVICE, and whether the device is to blame.
 */
int context_check(const Context *context, CUresult result, const char *what, Failure *failure);

#endif
