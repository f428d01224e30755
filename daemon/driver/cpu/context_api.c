/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuCtx calls
 *
 * Destroying a context frees everything that was created in it. So this file includes streams,
 * events and modules, which in turn include the context.
 */
#include <stdatomic.h>

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "driver/cpu/context.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/event.h"
#include "driver/cpu/fault.h"
#include "driver/cpu/module.h"
#include "driver/cpu/print.h"
#include "driver/cpu/stream.h"
#include "util/macro.h"

#define CONTEXT_LEAST     0 /* stream priorities, as of NVIDIA's driver */
#define CONTEXT_GREATEST  (-5)
#define CONTEXT_FLAG_BITS 0xffu

CUresult context_open(Device *device, unsigned n_sms, Context **ret_context) {
        Context *context;
        CUresult r;

        r = broken_device(device->number);
        if (r)
                return r;
        if (!broken_take_room(device->number))
                return CUDA_ERROR_OUT_OF_MEMORY;

        fault_install(engine_end_kernel, engine_leave);
        context = context_new(device, n_sms);
        if (!context)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *ret_context = context;
        return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice ordinal) {
        Device *device;
        CUresult r;

        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (!ret_context || flags & ~CONTEXT_FLAG_BITS)
                return CUDA_ERROR_INVALID_VALUE;
        device = device_find(ordinal);
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        r = context_open(device, device->n_threads, ret_context);
        if (r)
                return r;

        context_set_current(*ret_context);
        return CUDA_SUCCESS;
}

/* Nothing runs any more, so no object is in use. */
static void context_clear(Context *context) {
        while (!LIST_EMPTY(&context->modules))
                module_free(LIST_FIRST(&context->modules));
        while (!LIST_EMPTY(&context->events))
                event_release(LIST_FIRST(&context->events));
}

CUresult cuCtxDestroy_v2(CUcontext context) {
        Stream *stream, *next;
        int none = 0;

        if (!context || context->magic != CONTEXT_MAGIC)
                return CUDA_ERROR_INVALID_CONTEXT;

        /* Running work is stopped, because a kernel may run for ever. */
        atomic_compare_exchange_strong(&context->error, &none, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        pthread_mutex_lock(&context->lock);
        context->ending = true;
        for (stream = LIST_FIRST(&context->streams); stream; stream = next) {
                next = LIST_NEXT(stream, link);
                stream->ending = true;
                if (stream->started)
                        pthread_cond_signal(&stream->wake);
                else
                        stream_free(stream);
        }
        context_rouse(context);
        while (context->n_threads)
                pthread_cond_wait(&context->progress, &context->lock);
        pthread_mutex_unlock(&context->lock);

        print_flush(context->print);
        context_clear(context);
        if (context_current() == context)
                context_set_current(NULL);
        context_free(context);
        return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (context && context->magic != CONTEXT_MAGIC)
                return CUDA_ERROR_INVALID_CONTEXT;

        context_set_current(context);
        return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
        Context *context;
        CUresult r;

        context = context_current();
        if (context && context->error)
                print_flush(context->print);
        r = context_enter(&context);
        if (r)
                return r;

        r = stream_drain(context);
        print_flush(context->print);
        return r;
}

CUresult cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest) {
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;

        if (ret_least)
                *ret_least = CONTEXT_LEAST;
        if (ret_greatest)
                *ret_greatest = CONTEXT_GREATEST;
        return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if ((size_t)limit >= ARRAY_SIZE(context->limits))
                return CUDA_ERROR_UNSUPPORTED_LIMIT;
        if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && !print_resize(context->print, value))
                return CUDA_ERROR_OUT_OF_MEMORY;

        context->limits[limit] = value;
        return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total) {
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;

        if (ret_free)
                *ret_free = context->device->total - context->device->used;
        if (ret_total)
                *ret_total = context->device->total;
        return CUDA_SUCCESS;
}
