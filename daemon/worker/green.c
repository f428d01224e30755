/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/green.h"

/* What a device allows as a part. */
typedef struct GreenGrain {
        unsigned n_least, n_step;
} GreenGrain;

static int green_check(Green *green, const char *call, CUresult result) {
        green->call = call;
        green->result = result;
        return result == CUDA_SUCCESS ? 0 : GREEN_E_FAILED;
}

static int green_find_calls(const Driver *cu, Green *green) {
#define GREEN_FIND(name, symbol, arguments)                                                        \
        if (!cu->name)                                                                             \
                return green_check(green, #name, CUDA_ERROR_NOT_FOUND);
        DRIVER_OPTIONAL_FUNCTIONS(GREEN_FIND)
#undef GREEN_FIND
        return 0;
}

/* Before CUDA 13.0 the driver rounds in the same way, but does not say how. */
static GreenGrain green_grain_before_13(const Driver *cu, CUdevice device) {
        int major = 0;

        (void)cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                       device);
        if (major == 8)
                return (GreenGrain){4, 2};
        return major < 8 ? (GreenGrain){2, 2} : (GreenGrain){8, 8};
}

static GreenGrain green_grain(const Driver *cu, CUdevice device, const CUdevSmResource *sm) {
        if (sm->minSmPartitionSize < 1 || sm->minSmPartitionSize > sm->smCount ||
            sm->smCoscheduledAlignment < 1 || sm->smCoscheduledAlignment > sm->smCount)
                return green_grain_before_13(cu, device);
        return (GreenGrain){sm->minSmPartitionSize, sm->smCoscheduledAlignment};
}

static int green_split(const Driver *cu, CUdevice device, Sms sms, CUdevResource *ret_part,
                       Green *green) {
        CUdevResource whole = {0}, rest = {0};
        unsigned n, n_parts = 1;
        GreenGrain grain;
        CUresult result;
        int r;

        r = green_check(green, "cuDeviceGetDevResource",
                        cu->cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
        if (r)
                return r;
        grain = green_grain(cu, device, &whole.sm);
        n = sms_count(sms, whole.sm.smCount, grain.n_least, grain.n_step);
        if (n >= whole.sm.smCount)
                return GREEN_E_WHOLE;

        result = cu->cuDevSmResourceSplitByCount(ret_part, &n_parts, &whole, &rest, 0, n);
        if (result == CUDA_SUCCESS && n_parts != 1)
                result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        green->n_sms = ret_part->sm.smCount;
        green->n_all = whole.sm.smCount;
        return green_check(green, "cuDevSmResourceSplitByCount", result);
}

static int green_enter(const Driver *cu, CUgreenCtx handle, Green *green) {
        int r;

        r = green_check(green, "cuCtxFromGreenCtx", cu->cuCtxFromGreenCtx(&green->context, handle));
        if (r)
                return r;
        return green_check(green, "cuCtxSetCurrent", cu->cuCtxSetCurrent(green->context));
}

static int green_create(const Driver *cu, CUdevice device, CUdevResource *part, Green *green) {
        CUdevResourceDesc desc;
        CUgreenCtx handle;
        int r;

        r = green_check(green, "cuDevResourceGenerateDesc",
                        cu->cuDevResourceGenerateDesc(&desc, part, 1));
        if (r)
                return r;
        /* As of any worker's context; cuGreenCtxCreate() makes the primary context with them. */
        r = green_check(green, "cuDevicePrimaryCtxSetFlags",
                        cu->cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_AUTO |
                                                                       CU_CTX_LMEM_RESIZE_TO_MAX));
        if (r)
                return r;
        r = green_check(green, "cuGreenCtxCreate",
                        cu->cuGreenCtxCreate(&handle, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
        if (r)
                return r;

        r = green_enter(cu, handle, green);
        if (r)
                (void)cu->cuGreenCtxDestroy(handle); /* and the primary context with it */
        return r;
}

int green_new(const Driver *cu, CUdevice device, Sms sms, Green *green) {
        CUdevResource part = {0};
        int r;

        r = green_find_calls(cu, green);
        if (r)
                return r;
        r = green_split(cu, device, sms, &part, green);
        if (r)
                return r;
        return green_create(cu, device, &part, green);
}
