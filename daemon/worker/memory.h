/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_MEMORY_H
#define GPUQ_WORKER_MEMORY_H

/*
 * Memory
 *
 * The device memory that this process uses: from NVML if it exists, else from the driver. NVML takes
 * milliseconds, so a thread asks it.
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

        /* used by the thread while it asks */
        bool opened;
        struct Nvml *nvml; /* NULL: there is none */
        uint64_t n_bytes;
} Memory;

/** memory_init() */
void memory_init(Memory *memory, Context *context, uv_loop_t *loop, MemoryFunc func,
                 void *userdata);
/** memory_ask() - func receives the answer, perhaps before this returns. */
void memory_ask(Memory *memory);

#endif
