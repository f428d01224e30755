/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/context.h"

#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/event.h"
#include "driver/cpu/fault.h"
#include "driver/cpu/launch.h"
#include "driver/cpu/module.h"
#include "driver/cpu/print.h"
#include "driver/cpu/stream.h"
#include "util/macro.h"

#define CONTEXT_MAGIC     0x63747874u
#define CONTEXT_STACK     (512u << 10) /* bytes: kernels run on stacks of their own */
#define CONTEXT_LEAST     0            /* stream priorities, as of NVIDIA's driver */
#define CONTEXT_GREATEST  (-5)
#define CONTEXT_FLAG_BITS 0xffu

static _Thread_local Context *current;

static Context *context_free(Context *context) {
        if (!context)
                return NULL;

        print_free(context->print);
        pthread_cond_destroy(&context->offered);
        pthread_cond_destroy(&context->progress);
        pthread_mutex_destroy(&context->lock);
        context->magic = 0;
        free(context);
        return NULL;
}

static Context *context_new(Device *device) {
        Context *context;

        context = calloc(1, sizeof(*context));
        if (!context)
                return NULL;

        context->magic = CONTEXT_MAGIC;
        context->device = device;
        context->limits[CU_LIMIT_STACK_SIZE] = 1024;
        context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
        context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
        pthread_mutex_init(&context->lock, NULL);
        pthread_cond_init(&context->progress, NULL);
        pthread_cond_init(&context->offered, NULL);
        LIST_INIT(&context->streams);
        LIST_INIT(&context->events);
        LIST_INIT(&context->modules);
        LIST_INIT(&context->engines);
        TAILQ_INIT(&context->launches);
        context->print = print_new(context->limits[CU_LIMIT_PRINTF_FIFO_SIZE]);
        if (!context->print)
                return context_free(context);

        return context;
}

CUresult context_enter(Context **ret_context) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (!current)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (current->error)
                return (CUresult)current->error;

        *ret_context = current;
        return CUDA_SUCCESS;
}

CUresult context_healthy(void) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;

        return current ? (CUresult)current->error : CUDA_SUCCESS;
}

int context_error(const Context *context) {
        return context->error;
}

void context_print(Context *context, const char *format, va_list arguments) {
        print_add(context->print, format, arguments);
}

void context_add_engine(Context *context, Engine *engine) {
        pthread_mutex_lock(&context->lock);
        LIST_INSERT_HEAD(&context->engines, engine, link);
        pthread_mutex_unlock(&context->lock);
}

void context_remove_engine(Context *context, Engine *engine) {
        pthread_mutex_lock(&context->lock);
        LIST_REMOVE(engine, link);
        pthread_mutex_unlock(&context->lock);
}

/* With the lock held: everybody looks at the error again. */
static void context_rouse(Context *context) {
        Engine *engine;
        Stream *stream;

        LIST_FOREACH (engine, &context->engines, link)
                fault_interrupt(engine->thread);
        LIST_FOREACH (stream, &context->streams, link)
                pthread_cond_signal(&stream->wake);
        pthread_cond_broadcast(&context->offered);
        pthread_cond_broadcast(&context->progress);
}

void context_fail(Context *context, CUresult error) {
        int none = 0;

        /* Of several faults the first counts; the others may follow from it. */
        if (!atomic_compare_exchange_strong(&context->error, &none, (int)error))
                return;

        pthread_mutex_lock(&context->lock);
        context_rouse(context);
        pthread_mutex_unlock(&context->lock);
}

int context_thread_start(Context *context, void *(*main)(void *), void *argument) {
        pthread_attr_t attributes;
        pthread_t thread;
        int r;

        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, CONTEXT_STACK);
        r = pthread_create(&thread, &attributes, main, argument);
        pthread_attr_destroy(&attributes);
        if (r)
                return -r;

        context->n_threads++;
        return 0;
}

void context_thread_end(Context *context) {
        context->n_threads--;
        pthread_cond_broadcast(&context->progress);
        pthread_mutex_unlock(&context->lock);
}

CUresult context_drain(Context *context) {
        Stream *stream;

        pthread_mutex_lock(&context->lock);
again:
        LIST_FOREACH (stream, &context->streams, link) {
                if (!stream_idle(stream) && !context->error) {
                        pthread_cond_wait(&context->progress, &context->lock);
                        goto again;
                }
        }
        pthread_mutex_unlock(&context->lock);
        return (CUresult)context->error;
}

/* ---- helpers ---------------------------------------------------------------- */

/* The launch of the highest priority that has blocks left. Lower numbers go first. */
static Launch *context_pick(Context *context) {
        Launch *best = NULL, *launch;

        TAILQ_FOREACH (launch, &context->launches, link)
                if (launch_has_blocks(launch) && (!best || launch->priority < best->priority))
                        best = launch;

        return best;
}

static void *context_helper(void *argument) {
        Context *context = argument;
        Engine *engine = engine_new(context);
        Launch *launch;

        pthread_mutex_lock(&context->lock);
        while (engine && !context->ending) {
                launch = context->error ? NULL : context_pick(context);
                if (!launch) {
                        context->n_idle++;
                        pthread_cond_wait(&context->offered, &context->lock);
                        context->n_idle--;
                        continue;
                }

                launch->n_helping++;
                pthread_mutex_unlock(&context->lock);
                launch_blocks(launch, engine);
                pthread_mutex_lock(&context->lock);
                if (--launch->n_helping == 0)
                        pthread_cond_broadcast(&context->progress);
        }
        pthread_mutex_unlock(&context->lock);

        engine_free(engine);
        pthread_mutex_lock(&context->lock);
        context->n_helpers--;
        context_thread_end(context);
        return NULL;
}

void context_offer(Context *context, Launch *launch) {
        pthread_mutex_lock(&context->lock);
        TAILQ_INSERT_TAIL(&context->launches, launch, link);
        /* The stream's own thread is one of the device's. */
        if (!context->n_idle && context->n_helpers + 1 < context->device->n_threads &&
            context_thread_start(context, context_helper, context) == 0)
                context->n_helpers++;
        pthread_cond_broadcast(&context->offered);
        pthread_mutex_unlock(&context->lock);
}

void context_withdraw(Context *context, Launch *launch) {
        pthread_mutex_lock(&context->lock);
        TAILQ_REMOVE(&context->launches, launch, link);
        while (launch->n_helping)
                pthread_cond_wait(&context->progress, &context->lock);
        pthread_mutex_unlock(&context->lock);
}

/* ---- the API ------------------------------------------------------------------ */

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
        r = broken_device(device->number);
        if (r)
                return r;
        if (!broken_take_room(device->number))
                return CUDA_ERROR_OUT_OF_MEMORY;

        fault_install();
        current = context_new(device);
        if (!current)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *ret_context = current;
        return CUDA_SUCCESS;
}

/* Nothing runs any more: what is left belongs to nobody. */
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

        /* What still runs is ended: a kernel may run for ever. */
        atomic_compare_exchange_strong(&context->error, &none, CUDA_ERROR_CONTEXT_IS_DESTROYED);
        pthread_mutex_lock(&context->lock);
        context->ending = true;
        for (stream = LIST_FIRST(&context->streams); stream; stream = next) {
                next = LIST_NEXT(stream, link);
                stream->ending = true;
                if (!stream->started)
                        stream_free(stream);
        }
        context_rouse(context);
        while (context->n_threads)
                pthread_cond_wait(&context->progress, &context->lock);
        pthread_mutex_unlock(&context->lock);

        print_flush(context->print);
        context_clear(context);
        if (current == context)
                current = NULL;
        context_free(context);
        return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (context && context->magic != CONTEXT_MAGIC)
                return CUDA_ERROR_INVALID_CONTEXT;

        current = context;
        return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
        Context *context;
        CUresult r;

        if (current && current->error)
                print_flush(current->print);
        r = context_enter(&context);
        if (r)
                return r;

        r = context_drain(context);
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
