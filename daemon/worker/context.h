/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CONTEXT_H
#define GPUQ_WORKER_CONTEXT_H

/*
 * Context
 *
 * The worker's CUDA context, its scratch pool and the device's capabilities. Used by the loop's thread
 * alone. This module alone turns a CUresult into a Failure.
 */

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "util/sms.h"
#include "worker/failure.h"

typedef struct ContextLimits {
        unsigned max_threads;       /* in a block */
        unsigned max_block[3];      /* threads in each direction */
        unsigned max_grid[3];       /* blocks in each direction */
        size_t max_shared;          /* bytes in a block, opted in for */
        unsigned n_multiprocessors; /* of the context; of a green one fewer than the device has */
        unsigned max_cluster;       /* blocks; 0: the device has no clusters */
        bool cooperative;
        size_t max_texture_line;        /* texels, of one dimension */
        size_t max_texture[2];          /* texels and rows */
        size_t max_texture_pitch;       /* bytes */
        size_t texture_alignment;       /* bytes: where a texture begins; 1 or more */
        size_t texture_pitch_alignment; /* bytes: likewise */
} ContextLimits;

typedef struct Context {
        const Driver *cu;
        CUdevice device;
        CUcontext context;
        bool is_green;  /* green.h */
        bool has_range; /* util/fixed_range.h is reserved */
        CUmemoryPool pool;
        ContextLimits limits;
        int priority_least, priority_greatest;
        size_t granularity; /* bytes, of exportable memory */
        char target[16];    /* for the compiler: "sm_90", "cpu" */
        char pci[32];
        struct Library *library; /* library.h; NULL: none */
} Context;

/**
 * context_new() - cuInit and a context on a device, current in this thread
 * @cu:  borrowed, outlives the context
 * @sms: that its kernels may use. If that is not possible, all, with a line in the log
 *
 * It is never freed and ends with the process: destroying a context whose kernel faulted or never ends
 * would hang.
 *
 * Return: 0, FAILURE_E_SET, or -ENOMEM.
 */
int context_new(const Driver *cu, unsigned device, Sms sms, Context **ret_context,
                Failure *failure);
/** context_free_bytes() - of the device's memory; 0: unknown. */
uint64_t context_free_bytes(const Context *context);
/** context_properties() - of exportable memory on this device. */
CUmemAllocationProp context_properties(const Context *context);

/** result_is_sticky() - whether all later calls in this context fail, too. */
bool result_is_sticky(CUresult result);
/** result_text() - "CUDA_ERROR_X: an x happened" into @text. Return: @text. */
const char *result_text(const Driver *cu, CUresult result, char *text, size_t n_text);
/**
 * result_check() - turn a CUresult into this project's error code
 * @code: of a failure that is not sticky
 * @what: the operation, for the text
 *
 * Return: 0, FAILURE_E_SET, or FAILURE_E_FAULT, whose text is CUDA's alone.
 */
int result_check(const Driver *cu, CUresult result, Gpuq__V1__Code code, const char *what,
                 Failure *failure);
/**
 * context_check() - result_check() for a call during the worker's start
 *
 * Out of memory is E_MEMORY, because the device has no memory for one more context. Other errors are
 * E_NO_DEVICE, with is_device if the device is to blame.
 */
int context_check(const Context *context, CUresult result, const char *what, Failure *failure);

#endif
