/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device check
 */
#include "worker/check.h"

#include <string.h>

#include "worker/context.h"
#include "worker/device.h"

#define CHECK_BYTES   (1u << 20)
#define CHECK_PATTERN 0x5aa5c33cu

/* Free memory besides this context. A worker's context needs it, because it sets up more than
 * this process. */
#define CHECK_ROOM_BYTES (UINT64_C(64) << 20)

static int check_broken(Failure *failure, const char *why) {
        failure_set(failure, GPUQ__V1__CODE__E_NO_DEVICE, "%s", why);
        failure->is_device = true;
        return FAILURE_E_SET;
}

static int check_result(const Context *context, CUresult result, const char *what,
                        Failure *failure) {
        Gpuq__V1__Code code = result == CUDA_ERROR_OUT_OF_MEMORY ? GPUQ__V1__CODE__E_MEMORY
                                                                 : GPUQ__V1__CODE__E_NO_DEVICE;
        int r = result_check(context->cu, result, code, what, failure);

        failure->is_device = r && (device_is_broken(result) || r == FAILURE_E_FAULT);
        return r ? FAILURE_E_SET : 0;
}

static int check_write_and_read(const Context *context, CUdeviceptr memory, uint32_t *words,
                                Failure *failure) {
        const Driver *cu = context->cu;
        size_t n_words = CHECK_BYTES / sizeof(*words);
        int r;

        r = check_result(context, cu->cuMemsetD32Async(memory, CHECK_PATTERN, n_words, NULL),
                         "cuMemsetD32Async", failure);
        if (r)
                return r;
        r = check_result(context, cu->cuMemcpyDtoHAsync(words, memory, CHECK_BYTES, NULL),
                         "cuMemcpyDtoHAsync", failure);
        if (r)
                return r;
        r = check_result(context, cu->cuStreamSynchronize(NULL), "cuStreamSynchronize", failure);
        if (r)
                return r;

        for (size_t i = 0; i < n_words; ++i)
                if (words[i] != CHECK_PATTERN)
                        return check_broken(failure, "its memory does not keep what is written");
        return 0;
}

static int check_room(const Context *context, Failure *failure) {
        size_t n_free, n_total;
        int r;

        r = check_result(context, context->cu->cuMemGetInfo(&n_free, &n_total), "cuMemGetInfo",
                         failure);
        if (r)
                return r;
        return n_free >= CHECK_ROOM_BYTES
                       ? 0
                       : failure_set(failure, GPUQ__V1__CODE__E_MEMORY,
                                     "only %zu MiB of device memory are free", n_free >> 20);
}

static int check_memory(const Context *context, Failure *failure) {
        _cleanup_(freep) uint32_t *words = malloc(CHECK_BYTES);
        CUdeviceptr memory;
        int r;

        if (!words)
                return failure_set(failure, GPUQ__V1__CODE__E_INTERNAL,
                                   "the check is out of memory");
        r = check_result(
                context,
                context->cu->cuMemAllocFromPoolAsync(&memory, CHECK_BYTES, context->pool, NULL),
                "cuMemAllocFromPoolAsync", failure);
        return r ? r : check_write_and_read(context, memory, words, failure);
}

static int check_context(const Driver *driver, unsigned ordinal, Failure *failure) {
        const char *problem;
        Context *context;
        int r;

        /* The context and its memory are not freed: the process ends. */
        r = context_new(driver, ordinal, (Sms){}, &context, failure);
        if (r < 0)
                return failure_set(failure, GPUQ__V1__CODE__E_INTERNAL, "%s", strerror(-r));
        if (r)
                return r;
        if (!driver->cpu && device_ask_nvml(context->pci, &problem))
                return check_broken(failure, problem);
        r = check_memory(context, failure);
        return r ? r : check_room(context, failure);
}

int check_run(const WorkerOptions *options, Driver **ret_driver, Failure *failure) {
        unsigned ordinal;
        int r;

        r = worker_find_device(options, ret_driver, &ordinal, failure);
        if (r)
                return r;
        return check_context(*ret_driver, ordinal, failure);
}
