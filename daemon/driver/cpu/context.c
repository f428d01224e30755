/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/context.h"

#include <stdatomic.h>

#include "driver/cpu/context_thread.h"
#include "driver/cpu/fault.h"
#include "driver/cpu/print.h"
#include "util/macro.h"

#define CONTEXT_STACK (512u << 10) /* bytes: kernels run on stacks of their own */

static _Thread_local Context *current;

Context *context_free(Context *context) {
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

Context *context_new(Device *device, unsigned n_sms) {
        Context *context;

        context = calloc(1, sizeof(*context));
        if (!context)
                return NULL;

        context->magic = CONTEXT_MAGIC;
        context->device = device;
        context->n_sms = n_sms;
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

Context *context_current(void) {
        return current;
}

void context_set_current(Context *context) {
        current = context;
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
        engine->n_sms = context->n_sms;
        engine->sm = context->n_engines++ % context->n_sms;
        LIST_INSERT_HEAD(&context->engines, engine, link);
        pthread_mutex_unlock(&context->lock);
}

void context_remove_engine(Context *context, Engine *engine) {
        pthread_mutex_lock(&context->lock);
        LIST_REMOVE(engine, link);
        pthread_mutex_unlock(&context->lock);
}

void context_rouse(Context *context) {
        Engine *engine;

        LIST_FOREACH (engine, &context->engines, link)
                fault_interrupt(engine->thread);
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
