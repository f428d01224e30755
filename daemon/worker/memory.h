/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_MEMORY_H
#define GPUQ_WORKER_MEMORY_H

/*
 * Memory
 *
 * How much device memory this process has: by NVML where there is one, else by
 * the driver. NVML takes milliseconds, so it is asked in another thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "worker/context.h"

/* Called in the loop's thread. */
typedef void (*MemoryFunc)(uint64_t n_bytes, void *userdata);

typedef struct Memory {
        Context *context;
        uv_loop_t *loop;
        MemoryFunc func;
        void *userdata;
        uv_work_t work;
        bool asking;

        /* the other thread's, while asking */
        bool opened;
        struct Nvml *nvml; /* NULL: there is none */
        uint64_t n_bytes;
} Memory;

/** memory_init() */
void memory_init(Memory *memory, Context *context, uv_loop_t *loop, MemoryFunc func,
                 void *userdata);
/** memory_ask() - the answer comes by func, perhaps before this returns. */
void memory_ask(Memory *memory);

#endif
