/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_CONTEXT_THREAD_H
#define GPUQ_CPU_CONTEXT_THREAD_H

/*
 * The part of a context that the threads which run kernels use. context.h is C;
 * this is C++ as well.
 */

#include <pthread.h>
#include <stdarg.h>
#include <sys/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A host thread that runs kernels, which a fault of its context interrupts. */
typedef struct Engine {
        struct CUctx_st *context;
        pthread_t thread;
        unsigned sm, n_sms;      /* as kernels see it: which one, and of how many */
        LIST_ENTRY(Engine) link; /* context->engines */
} Engine;

/** context_error() - the fault, or 0. */
int context_error(const struct CUctx_st *context);
/** context_print() - add the output of a kernel. */
void context_print(struct CUctx_st *context, const char *format, va_list arguments);
/** context_add_engine() - a thread that a fault has to interrupt. Sets its sm. */
void context_add_engine(struct CUctx_st *context, Engine *engine);
/** context_remove_engine() - undo context_add_engine(). */
void context_remove_engine(struct CUctx_st *context, Engine *engine);

#ifdef __cplusplus
}
#endif

#endif
