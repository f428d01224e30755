/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts
 *
 * The SMs of a device are host threads that run kernels. A green context is a context of its own whose
 * kernels get fewer of them; with CUDA it would share memory and modules with the device's primary
 * context. So that callers have something to round, a part has an even number of SMs.
 */
#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "driver/cpu/context.h"
#include "util/macro.h"

#define GREEN_LEAST 2u /* SMs of a part; their number is a multiple of it */

/* Which device it is of; nobody else looks into the padding. */
static unsigned char *resource_owner(CUdevResource *resource) {
        return resource->_internal_padding;
}

static CUdevResource resource_make(const Device *device, unsigned n_sms) {
        CUdevResource resource = {
                .type = CU_DEV_RESOURCE_TYPE_SM,
                .sm = {.smCount = n_sms,
                       .minSmPartitionSize = GREEN_LEAST,
                       .smCoscheduledAlignment = GREEN_LEAST},
        };

        *resource_owner(&resource) = (unsigned char)device->ordinal;
        return resource;
}

static CUresult resource_check(const CUdevResource *resource, Device **ret_device) {
        if (!resource)
                return CUDA_ERROR_INVALID_VALUE;
        if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
                return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        *ret_device = device_find(*resource->_internal_padding);
        return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetDevResource(CUdevice ordinal, CUdevResource *ret_resource,
                                CUdevResourceType type) {
        Device *device = device_find(ordinal);
        CUresult r = broken_call("cuDeviceGetDevResource");

        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (!ret_resource)
                return CUDA_ERROR_INVALID_VALUE;
        if (type != CU_DEV_RESOURCE_TYPE_SM)
                return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        if (r)
                return r;

        *ret_resource = resource_make(device, device->n_threads);
        return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *ret_parts, unsigned int *n_parts,
                                     const CUdevResource *whole, CUdevResource *ret_rest,
                                     unsigned int flags, unsigned int n_least) {
        unsigned n_each = (MAX(n_least, 1u) + GREEN_LEAST - 1) / GREEN_LEAST * GREEN_LEAST, n;
        Device *device;
        CUresult r;

        r = resource_check(whole, &device);
        if (!r)
                r = broken_call("cuDevSmResourceSplitByCount");
        if (r)
                return r;
        if (!n_parts || flags || n_least > whole->sm.smCount)
                return CUDA_ERROR_INVALID_VALUE;
        if (n_each > whole->sm.smCount)
                return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;

        n = whole->sm.smCount / n_each;
        *n_parts = ret_parts ? MIN(n, *n_parts) : n;
        for (unsigned i = 0; ret_parts && i < *n_parts; ++i)
                ret_parts[i] = resource_make(device, n_each);
        if (ret_rest)
                *ret_rest = resource_make(device, whole->sm.smCount - *n_parts * n_each);
        return CUDA_SUCCESS;
}

/* No call frees a descriptor. So it is no memory but a number: of SMs, and behind it of the device. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *ret_desc, CUdevResource *resources,
                                   unsigned int n_resources) {
        Device *device;
        CUresult r;

        if (!ret_desc || n_resources != 1)
                return CUDA_ERROR_INVALID_VALUE;
        r = resource_check(resources, &device);
        if (!r)
                r = broken_call("cuDevResourceGenerateDesc");
        if (r)
                return r;
        if (!resources->sm.smCount)
                return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;

        *ret_desc = (CUdevResourceDesc)((uintptr_t)resources->sm.smCount << 8 |
                                        (unsigned)device->ordinal);
        return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        return device_find(ordinal) ? broken_call("cuDevicePrimaryCtxSetFlags")
                                    : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuGreenCtxCreate(CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice ordinal,
                          unsigned int flags) {
        Device *device = device_find(ordinal);
        uintptr_t number = (uintptr_t)desc;
        Context *context;
        CUresult r;

        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (!ret_green || flags != CU_GREEN_CTX_DEFAULT_STREAM || !number ||
            (int)(number & 0xff) != ordinal || number >> 8 > device->n_threads)
                return CUDA_ERROR_INVALID_VALUE;
        r = broken_call("cuGreenCtxCreate");
        if (!r)
                r = context_open(device, (unsigned)(number >> 8), &context);
        if (r)
                return r;

        *ret_green = (CUgreenCtx)context;
        return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
        return cuCtxDestroy_v2((CUcontext)green);
}

CUresult cuCtxFromGreenCtx(CUcontext *ret_context, CUgreenCtx green) {
        Context *context = (Context *)green;
        CUresult r;

        if (!ret_context)
                return CUDA_ERROR_INVALID_VALUE;
        if (!context || context->magic != CONTEXT_MAGIC)
                return CUDA_ERROR_INVALID_CONTEXT;
        r = broken_call("cuCtxFromGreenCtx");
        if (r)
                return r;

        *ret_context = context;
        return CUDA_SUCCESS;
}
