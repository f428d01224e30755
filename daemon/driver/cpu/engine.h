/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_ENGINE_H
#define GPUQ_CPU_ENGINE_H

/*
 * Engine
 *
 * Enables a host thread to run kernels: stacks and a signal stack. It runs one block at a time.
 * Code of users, and code that accesses addresses of users, runs inside an engine, so that a
 * fault there ends only that code.
 */

#include <stdbool.h>

#include "driver/cpu/context_thread.h"
#include "driver/cpu/image.h"
#include "driver/cuda_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct Gang;

/* A block to run. */
typedef struct EngineBlock {
        const GpuqCpuImage *image;
        const GpuqCpuEntry *entry;
        void *const *params;
        GpuqCpuIndex grid_dim, block_dim, cluster_dim;
        GpuqCpuIndex block, cluster;
        uint32_t shared_bytes;
        struct Gang *gang; /* blocks that it can wait for, or NULL */
        uint32_t rank;     /* in the gang */
        void *grid_words;  /* as in GpuqCpuPlace */
} EngineBlock;

/** engine_new() - for the calling thread, which registers with its context. NULL: no memory. */
Engine *engine_new(struct CUctx_st *context);
/** engine_free() - by the same thread; NULL is fine. Return: NULL. */
Engine *engine_free(Engine *engine);
/** engine_here() - of the calling thread, or NULL. */
Engine *engine_here(void);

/**
 * engine_run_block() - run it to its end
 *
 * Return: 0, also when it was cut short because the context failed meanwhile; or
 *         the fault of this block, which the caller tells the context.
 */
CUresult engine_run_block(Engine *engine, const EngineBlock *block);
/** engine_run_guarded() - run a function that may access bad addresses. Return: the fault, or
 * the function's result. */
CUresult engine_run_guarded(Engine *engine, CUresult (*run)(void *), void *argument);

/**
 * engine_end_kernel() - did the kernel cause the signal that is being handled?
 *
 * If so, no later signal counts as the kernel's, and engine_leave() must follow. Safe in a signal
 * handler.
 */
bool engine_end_kernel(void);
/** engine_leave() - end what ran, with @error or, if that is 0, because the context failed. */
void engine_leave(CUresult error) __attribute__((noreturn));

/** engine_place() - where the calling thread's engine stands. */
GpuqCpuPlace *engine_place(const Engine *engine);

/* What images call. */
extern const GpuqCpuRuntime engine_runtime;

#ifdef __cplusplus
}
#endif

#endif
