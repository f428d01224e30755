/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_CONTEXT_H
#define GPUQ_CPU_CONTEXT_H

/*
 * Context
 *
 * A CUDA context: streams with a host thread each, helper threads for large grids, modules, pools,
 * and what kernels printed. A kernel runs on its stream's thread and on helpers, together no more than
 * the context has SMs: all of the device's or, of a green context, a part of them. After the first fault the context runs nothing more, and every call
 * returns that fault, until the context is destroyed.
 *
 * One lock guards all of it. `progress` is signalled whenever something has ended.
 */

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "driver/cpu/device.h"
#include "driver/cuda_types.h"

#define CONTEXT_MAGIC 0x63747874u

struct Engine;
struct Launch;
struct Print;

typedef struct CUctx_st {
        uint32_t magic;
        Device *device;
        _Atomic int error; /* CUresult; the first fault */

        pthread_mutex_t lock;
        pthread_cond_t progress;
        bool ending;
        unsigned n_threads; /* of streams and helpers, which refer to this */
        unsigned n_sms;     /* host threads that a kernel may have */

        LIST_HEAD(, CUstream_st) streams;
        LIST_HEAD(, CUevent_st) events;
        LIST_HEAD(, CUmod_st) modules;
        LIST_HEAD(, Engine) engines; /* threads that may run kernels */
        unsigned n_engines;          /* that were ever made */
        struct CUstream_st *null_stream;

        TAILQ_HEAD(, Launch) launches; /* with blocks left for helpers */
        pthread_cond_t offered;
        unsigned n_helpers, n_idle;

        struct Print *print;
        size_t limits[3]; /* by CUlimit */
} Context;

/** context_new() - @n_sms: host threads for each kernel. NULL: no memory. */
Context *context_new(Device *device, unsigned n_sms);
/** context_open() - context_new() for a call of the API, which may find the device broken or full. */
CUresult context_open(Device *device, unsigned n_sms, Context **ret_context);
/** context_free() - with no thread and no object left; NULL is fine. Return: NULL. */
Context *context_free(Context *context);
/** context_current() - the calling thread's context in any state; NULL: none. */
Context *context_current(void);
/** context_set_current() - NULL: none. */
void context_set_current(Context *context);
/** context_enter() - the calling thread's context. Return: why a call cannot be served in it. */
CUresult context_enter(Context **ret_context);
/** context_healthy() - for calls that need no context: the fault of the current one, if any. */
CUresult context_healthy(void);

/**
 * context_fail() - a fault ends everything that runs in it
 *
 * Not to be called with the lock held.
 */
void context_fail(Context *context, CUresult error);
/** context_rouse() - with the lock held: make all threads that run kernels or wait for progress check the error again. */
void context_rouse(Context *context);

/** context_thread_start() - a detached thread that counts; call with the lock held. Return: 0 or -errno. */
int context_thread_start(Context *context, void *(*main)(void *), void *argument);
/** context_thread_end() - the last thing such a thread does; drops the lock, which it holds. */
void context_thread_end(Context *context);

#endif
