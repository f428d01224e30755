/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context
 */
#include "worker/context.h"

#include <stdio.h>
#include <string.h>

#include "util/fixed_range.h"
#include "util/log.h"
#include "worker/device.h"
#include "worker/green.h"

/* Bytes that the pool keeps when jobs end, so that later jobs find scratch without a system call. */
#define CONTEXT_POOL_KEEP_BYTES (UINT64_C(64) << 20)

/* Every device that has clusters takes eight blocks; more is not portable. */
#define CONTEXT_CLUSTER_MAX 8

bool result_is_sticky(CUresult result) {
        switch ((int)result) {
                case CUDA_ERROR_DEINITIALIZED:
                case CUDA_ERROR_ECC_UNCORRECTABLE:
                case CUDA_ERROR_NVLINK_UNCORRECTABLE:
                case CUDA_ERROR_ILLEGAL_ADDRESS:
                case CUDA_ERROR_LAUNCH_TIMEOUT:
                case CUDA_ERROR_CONTEXT_IS_DESTROYED:
                case CUDA_ERROR_ASSERT:
                case CUDA_ERROR_HARDWARE_STACK_ERROR:
                case CUDA_ERROR_ILLEGAL_INSTRUCTION:
                case CUDA_ERROR_MISALIGNED_ADDRESS:
                case CUDA_ERROR_INVALID_ADDRESS_SPACE:
                case CUDA_ERROR_INVALID_PC:
                case CUDA_ERROR_LAUNCH_FAILED:
                case CUDA_ERROR_EXTERNAL_DEVICE:
                case CUDA_ERROR_UNKNOWN:
                        return true;
                default:
                        return false;
        }
}

const char *result_text(const Driver *cu, CUresult result, char *text, size_t n_text) {
        const char *name = NULL, *string = NULL;

        if (cu->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
                name = "CUDA_ERROR";
        if (cu->cuGetErrorString(result, &string) != CUDA_SUCCESS || !string)
                string = "unknown";

        snprintf(text, n_text, "%s: %s", name, string);
        return text;
}

int result_check(const Driver *cu, CUresult result, Gpuq__V1__Code code, const char *what,
                 Failure *failure) {
        char text[256];

        if (result == CUDA_SUCCESS)
                return 0;

        result_text(cu, result, text, sizeof(text));
        if (result_is_sticky(result)) {
                failure_set(failure, GPUQ__V1__CODE__E_FAULT, "%s", text);
                failure->is_device = device_broke(result);
                return FAILURE_E_FAULT;
        }
        return failure_set(failure, code, "%s: %s", what, text);
}

int context_check(const Context *context, CUresult result, const char *what, Failure *failure) {
        Gpuq__V1__Code code = result == CUDA_ERROR_OUT_OF_MEMORY ? GPUQ__V1__CODE__E_MEMORY
                                                                 : GPUQ__V1__CODE__E_NO_DEVICE;
        int r = result_check(context->cu, result, code, what, failure);

        if (r)
                failure->is_device = device_is_broken(result);
        return r;
}

static unsigned context_attribute(const Context *context, CUdevice_attribute attribute) {
        int value = 0;

        if (context->cu->cuDeviceGetAttribute(&value, attribute, context->device) != CUDA_SUCCESS)
                return 0;
        return value > 0 ? (unsigned)value : 0;
}

static void context_read_texture_limits(Context *context) {
        ContextLimits *limits = &context->limits;

        limits->max_texture_line =
                context_attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
        limits->max_texture[0] =
                context_attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
        limits->max_texture[1] =
                context_attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
        limits->max_texture_pitch =
                context_attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
        limits->texture_alignment =
                MAX(context_attribute(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT), 1u);
        limits->texture_pitch_alignment =
                MAX(context_attribute(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT), 1u);
}

static void context_read_limits(Context *context) {
        ContextLimits *limits = &context->limits;

        for (unsigned i = 0; i < 3; ++i) {
                limits->max_block[i] =
                        context_attribute(context, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
                limits->max_grid[i] =
                        context_attribute(context, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
        }
        limits->max_threads = context_attribute(context, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        limits->max_shared =
                context_attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        if (limits->max_shared == 0)
                limits->max_shared =
                        context_attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
        if (!context->is_green)
                limits->n_multiprocessors =
                        context_attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        limits->cooperative = context_attribute(context, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
        if (context_attribute(context, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
                limits->max_cluster = CONTEXT_CLUSTER_MAX;
        context_read_texture_limits(context);
}

static void context_name_target(Context *context) {
        unsigned major = context_attribute(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        unsigned minor = context_attribute(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

        if (context->cu->cpu)
                strcpy(context->target, "cpu");
        else
                snprintf(context->target, sizeof(context->target), "sm_%u", major * 10 + minor);
        if (context->cu->cuDeviceGetPCIBusId(context->pci, sizeof(context->pci), context->device) !=
            CUDA_SUCCESS)
                context->pci[0] = '\0';
}

static int context_make_pool(Context *context, Failure *failure) {
        CUmemPoolProps props = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
                .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device},
        };
        uint64_t keep = CONTEXT_POOL_KEEP_BYTES;
        int r;

        r = context_check(context, context->cu->cuMemPoolCreate(&context->pool, &props),
                          "cuMemPoolCreate", failure);
        if (r)
                return r;

        return context_check(context,
                             context->cu->cuMemPoolSetAttribute(
                                     context->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                             "cuMemPoolSetAttribute", failure);
}

uint64_t context_free_bytes(const Context *context) {
        size_t n_free, n_total;

        return context->cu->cuMemGetInfo(&n_free, &n_total) == CUDA_SUCCESS ? n_free : 0;
}

CUmemAllocationProp context_properties(const Context *context) {
        return (CUmemAllocationProp){
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device},
        };
}

static int context_read_granularity(Context *context, Failure *failure) {
        CUmemAllocationProp props = context_properties(context);
        CUresult result = context->cu->cuMemGetAllocationGranularity(
                &context->granularity, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

        return context_check(context, result, "cuMemGetAllocationGranularity", failure);
}

static void context_log_share(const Context *context, Sms sms, const Green *green) {
        char share[SMS_TEXT], why[256];

        sms_text(sms, share);
        if (green->result == CUDA_SUCCESS)
                log_info("kernels use %u of %u SMs (sms = %s)", green->n_sms, green->n_all, share);
        else
                log_warning("kernels use all SMs, although sms = %s: %s: %s", share, green->call,
                            result_text(context->cu, green->result, why, sizeof(why)));
}

/*
 * Return: 0; @context->is_green: whether there is one. Where memory is short there is none either, but then a
 * context with all SMs would escape the share.
 */
static int context_create_green(Context *context, Sms sms, Failure *failure) {
        Green green = {0};
        int r;

        if (sms_are_all(sms))
                return 0;
        r = green_new(context->cu, context->device, sms, &green);
        if (r && green.result == CUDA_ERROR_OUT_OF_MEMORY)
                return context_check(context, green.result, green.call, failure);
        if (r != GREEN_E_WHOLE)
                context_log_share(context, sms, &green);
        if (r)
                return 0;

        context->context = green.context;
        context->is_green = true;
        context->limits.n_multiprocessors = green.n_sms;
        return 0;
}

/* Without it, device memory has other addresses in each worker, and only jobs that need the same ones fail. */
static void context_reserve_range(Context *context) {
        const Driver *cu = context->cu;
        CUdeviceptr address;

        if (cu->cuMemAddressReserve(&address, FIXED_RANGE_BYTES, 0, FIXED_RANGE_BEGIN, 0) !=
            CUDA_SUCCESS)
                return;
        context->has_range = address == FIXED_RANGE_BEGIN;
        if (!context->has_range)
                cu->cuMemAddressFree(address, FIXED_RANGE_BYTES);
}

static int context_create(Context *context, unsigned device, Sms sms, Failure *failure) {
        const Driver *cu = context->cu;
        int r;

        r = context_check(context, cu->cuInit(0), "cuInit", failure);
        if (r)
                return r;
        r = context_check(context, cu->cuDeviceGet(&context->device, (int)device), "cuDeviceGet",
                          failure);
        if (r)
                return r;

        context_reserve_range(context);
        r = context_create_green(context, sms, failure);
        if (r || context->is_green)
                return r;
        /*
         * Local memory, once grown for a kernel, stays: shrinking and growing
         * it again would wait for every running kernel.
         */
        return context_check(
                context,
                cu->cuCtxCreate(&context->context,
                                CU_CTX_SCHED_AUTO | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX,
                                context->device),
                "cuCtxCreate", failure);
}

static int context_fill(Context *context, unsigned device, Sms sms, Failure *failure) {
        int r;

        r = context_create(context, device, sms, failure);
        if (r)
                return r;

        context_read_limits(context);
        context_name_target(context);
        r = context_check(context,
                          context->cu->cuCtxGetStreamPriorityRange(&context->priority_least,
                                                                   &context->priority_greatest),
                          "cuCtxGetStreamPriorityRange", failure);
        if (r)
                return r;
        r = context_make_pool(context, failure);
        if (r)
                return r;
        return context_read_granularity(context, failure);
}

int context_new(const Driver *cu, unsigned device, Sms sms, Context **ret_context,
                Failure *failure) {
        _cleanup_(freep) Context *context = NULL;
        int r;

        context = calloc(1, sizeof(*context));
        if (!context)
                return -ENOMEM;

        context->cu = cu;
        r = context_fill(context, device, sms, failure);
        if (r == FAILURE_E_FAULT)
                return FAILURE_E_SET; /* there is no context yet that could be unusable */
        if (r)
                return r;

        *ret_context = TAKE_PTR(context);
        return 0;
}
