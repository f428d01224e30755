/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_MEMORY_H
#define GPUQ_WORKER_MEMORY_H

/*
 * Memory
 *
 * The device memory that this process uses, and what all programs use of it: from NVML if it exists, else
 * from the driver. NVML takes milliseconds, so a thread asks it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "worker/context.h"

/* Bytes. */
typedef struct MemoryUse {
        uint64_t own; /* of this process; of the whole device if that is not known */
        uint64_t all; /* of the whole device */
} MemoryUse;

/* Called in the loop's thread. */
typedef void (*MemoryFunc)(const MemoryUse *use, void *userdata);

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
        bool has_use;
        MemoryUse use;
} Memory;

/** memory_init() */
void memory_init(Memory *memory, Context *context, uv_loop_t *loop, MemoryFunc func,
                 void *userdata);
/** memory_ask() - func receives the answer, perhaps before this returns. */
void memory_ask(Memory *memory);

#endif
