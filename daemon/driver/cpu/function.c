/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function
 *
 * Attributes of a kernel, queried and set.
 */
#include "driver/cpu/api.h"
#include "driver/cpu/module.h"
#include "util/macro.h"

#define FUNCTION_REGISTERS 32 /* of a thread: a plausible number, nothing depends on it */

CUresult function_enter(CUfunction function, Context **ret_context) {
        CUresult r;

        r = context_enter(ret_context);
        if (r)
                return r;

        return function && function->magic == FUNCTION_MAGIC ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetName(const char **ret_name, CUfunction function) {
        Context *context;
        CUresult r;

        r = function_enter(function, &context);
        if (r)
                return r;
        if (!ret_name)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_name = function->entry->name;
        return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
        Context *context;

        return function_enter(function, &context);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *ret_offset,
                            size_t *ret_size) {
        Context *context;
        CUresult r;

        r = function_enter(function, &context);
        if (r)
                return r;
        if (!ret_offset || index >= function->entry->n_params)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_offset = function->entry->offsets[index];
        if (ret_size)
                *ret_size = function->entry->sizes[index];
        return CUDA_SUCCESS;
}

static int function_max_threads(const Function *function) {
        return (int)MIN(function->entry->max_threads ? function->entry->max_threads
                                                     : (uint32_t)DEVICE_MAX_THREADS,
                        (uint32_t)DEVICE_MAX_THREADS);
}

CUresult cuFuncGetAttribute(int *ret_value, CUfunction_attribute attribute, CUfunction function) {
        Context *context;
        CUresult r;

        r = function_enter(function, &context);
        if (r)
                return r;
        if (!ret_value)
                return CUDA_ERROR_INVALID_VALUE;

        switch (attribute) {
                case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
                        *ret_value = function_max_threads(function);
                        break;
                case CU_FUNC_ATTRIBUTE_NUM_REGS:
                        *ret_value = FUNCTION_REGISTERS;
                        break;
                case CU_FUNC_ATTRIBUTE_PTX_VERSION:
                case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
                        *ret_value = 90;
                        break;
                case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                        *ret_value = function->max_shared;
                        break;
                case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
                        *ret_value = function->carveout;
                        break;
                case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
                        *ret_value = function->large_clusters;
                        break;
                case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
                case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
                case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
                case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
                case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
                case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
                case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
                case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
                        *ret_value = 0;
                        break;
                default:
                        return CUDA_ERROR_INVALID_VALUE;
        }

        return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
        Context *context;
        CUresult r;

        r = function_enter(function, &context);
        if (r)
                return r;

        switch (attribute) {
                case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                        if (value < 0 || value > DEVICE_SHARED_OPTIN)
                                return CUDA_ERROR_INVALID_VALUE;
                        function->max_shared = value;
                        return CUDA_SUCCESS;
                case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
                        if (value < -1 || value > 100)
                                return CUDA_ERROR_INVALID_VALUE;
                        function->carveout = value;
                        return CUDA_SUCCESS;
                case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
                        function->large_clusters = value != 0;
                        return CUDA_SUCCESS;
                default:
                        return CUDA_ERROR_INVALID_VALUE;
        }
}

/* How many blocks a multiprocessor, which is a host thread, claims to hold. */
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks, CUfunction function,
                                                     int n_threads, size_t n_shared_bytes) {
        size_t n = DEVICE_MAX_BLOCKS;
        Context *context;
        CUresult r;

        r = function_enter(function, &context);
        if (r)
                return r;
        if (!ret_blocks || n_threads <= 0)
                return CUDA_ERROR_INVALID_VALUE;

        n = MIN(n, (size_t)(DEVICE_MULTI_THREADS / n_threads));
        if (n_shared_bytes)
                n = MIN(n, DEVICE_MULTI_SHARED / (n_shared_bytes + 1024));
        if (n_threads > function_max_threads(function) ||
            n_shared_bytes > (size_t)function->max_shared)
                n = 0;

        *ret_blocks = (int)n;
        return CUDA_SUCCESS;
}
