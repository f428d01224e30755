/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/green.h"

#include <stdbool.h>
#include <stdio.h>

#include "worker/context.h"

/* What a device allows as a part. */
typedef struct GreenGrain {
        unsigned n_least, n_step;
} GreenGrain;

static int green_check(const Driver *cu, CUresult result, const char *call, char *why) {
        char text[GREEN_WHY - 64];

        if (result == CUDA_SUCCESS)
                return 0;
        snprintf(why, GREEN_WHY, "%s: %s", call, result_text(cu, result, text, sizeof(text)));
        return GREEN_E_FAILED;
}

/* The name of a function that the driver lacks, or NULL. */
static const char *green_missing(const Driver *cu) {
#define GREEN_LOOK(name, symbol, arguments)                                                        \
        if (!cu->name)                                                                             \
                return #name;
        DRIVER_OPTIONAL_FUNCTIONS(GREEN_LOOK)
#undef GREEN_LOOK
        return NULL;
}

/* Before CUDA 13.0 the driver rounds in the same way, but tells nobody. */
static GreenGrain green_grain_of_old(const Driver *cu, CUdevice device) {
        int major = 0;

        if (cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                     device) != CUDA_SUCCESS ||
            major >= 9)
                return (GreenGrain){8, 8};
        return major == 8 ? (GreenGrain){4, 2} : (GreenGrain){2, 2};
}

static GreenGrain green_grain(const Driver *cu, CUdevice device, const CUdevSmResource *sm) {
        if (sm->minSmPartitionSize < 1 || sm->minSmPartitionSize > sm->smCount ||
            sm->smCoscheduledAlignment < 1 || sm->smCoscheduledAlignment > sm->smCount)
                return green_grain_of_old(cu, device);
        return (GreenGrain){sm->minSmPartitionSize, sm->smCoscheduledAlignment};
}

static int green_split(const Driver *cu, CUdevice device, Sms sms, CUdevResource *ret_part,
                       Green *ret_green, char *why) {
        CUdevResource whole = {0}, rest = {0};
        unsigned n, n_parts = 1;
        GreenGrain grain;
        int r;

        r = green_check(cu, cu->cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM),
                        "cuDeviceGetDevResource", why);
        if (r)
                return r;
        grain = green_grain(cu, device, &whole.sm);
        n = sms_count(sms, whole.sm.smCount, grain.n_least, grain.n_step);
        if (n >= whole.sm.smCount)
                return GREEN_E_WHOLE;

        r = green_check(cu,
                        cu->cuDevSmResourceSplitByCount(ret_part, &n_parts, &whole, &rest, 0, n),
                        "cuDevSmResourceSplitByCount", why);
        if (r)
                return r;
        if (n_parts != 1) {
                snprintf(why, GREEN_WHY, "cuDevSmResourceSplitByCount: no part with %u SMs", n);
                return GREEN_E_FAILED;
        }
        ret_green->n_sms = ret_part->sm.smCount;
        ret_green->n_all = whole.sm.smCount;
        return 0;
}

static int green_enter(const Driver *cu, CUgreenCtx handle, Green *ret_green, char *why) {
        int r;

        r = green_check(cu, cu->cuCtxFromGreenCtx(&ret_green->context, handle), "cuCtxFromGreenCtx",
                        why);
        if (r)
                return r;
        return green_check(cu, cu->cuCtxSetCurrent(ret_green->context), "cuCtxSetCurrent", why);
}

static int green_create(const Driver *cu, CUdevice device, CUdevResource *part, Green *ret_green,
                        char *why) {
        CUdevResourceDesc desc;
        CUgreenCtx handle;
        int r;

        r = green_check(cu, cu->cuDevResourceGenerateDesc(&desc, part, 1),
                        "cuDevResourceGenerateDesc", why);
        if (r)
                return r;
        /* As for any worker's context; the primary context is made by the next call. */
        r = green_check(cu,
                        cu->cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_AUTO |
                                                                       CU_CTX_LMEM_RESIZE_TO_MAX),
                        "cuDevicePrimaryCtxSetFlags", why);
        if (r)
                return r;
        r = green_check(cu,
                        cu->cuGreenCtxCreate(&handle, desc, device, CU_GREEN_CTX_DEFAULT_STREAM),
                        "cuGreenCtxCreate", why);
        if (r)
                return r;

        r = green_enter(cu, handle, ret_green, why);
        if (r)
                (void)cu->cuGreenCtxDestroy(handle); /* and the primary context with it */
        return r;
}

int green_new(const Driver *cu, CUdevice device, Sms sms, Green *ret_green,
              char ret_why[static GREEN_WHY]) {
        const char *missing = green_missing(cu);
        CUdevResource part = {0};
        Green green = {0};
        int r;

        if (missing) {
                snprintf(ret_why, GREEN_WHY, "the driver has no %s", missing);
                return GREEN_E_FAILED;
        }
        r = green_split(cu, device, sms, &part, &green, ret_why);
        if (r)
                return r;
        r = green_create(cu, device, &part, &green, ret_why);
        if (r)
                return r;

        *ret_green = green;
        return 0;
}
