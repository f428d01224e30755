/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory
 *
 * Registered or allocated memory. Both are the same to the CPU, but the ranges are recorded so
 * that calls fail as they do with CUDA.
 */
#include <sys/mman.h>

#include "driver/cpu/api.h"
#include "driver/cpu/range.h"
#include "driver/cpu/stream.h"
#include "util/macro.h"

#define HOST_REGISTER_FLAGS 0xfu
#define HOST_ALLOC_FLAGS    0x7u

/* Whether the process has memory at each page of the range. */
static bool host_is_mapped(const void *memory, size_t n_bytes) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uintptr_t start = (uintptr_t)memory / page * page;
        uintptr_t end = ((uintptr_t)memory + n_bytes + page - 1) / page * page;
        unsigned char state[1024];
        size_t n;

        for (; start < end; start += n) {
                n = MIN(end - start, sizeof(state) * page);
                if (mincore((void *)start, n, state) < 0)
                        return false;
        }

        return true;
}

CUresult cuMemHostRegister_v2(void *memory, size_t n_bytes, unsigned int flags) {
        Range range = {(uintptr_t)memory, n_bytes, RANGE_REGISTERED, NULL};
        Context *context;
        CUresult r;
        int added;

        r = context_enter(&context);
        if (r)
                return r;
        if (!memory || !n_bytes || n_bytes > UINTPTR_MAX - range.start ||
            flags & ~HOST_REGISTER_FLAGS || !host_is_mapped(memory, n_bytes))
                return CUDA_ERROR_INVALID_VALUE;

        added = range_add(&range);
        if (added < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;

        return added == RANGE_E_OVERLAP ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_SUCCESS;
}

/* Like NVIDIA's driver it waits until nothing uses the memory. */
CUresult cuMemHostUnregister(void *memory) {
        Context *context;
        Range range;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!range_find((uintptr_t)memory, RANGE_REGISTERED, &range) ||
            range.start != (uintptr_t)memory)
                return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        r = stream_drain(context);
        if (r)
                return r;

        range_remove((uintptr_t)memory, RANGE_REGISTERED, &range);
        return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret_pointer, void *memory, unsigned int flags) {
        Context *context;
        Range range;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!ret_pointer || flags || !range_find((uintptr_t)memory, RANGE_PINNED, &range))
                return CUDA_ERROR_INVALID_VALUE;

        *ret_pointer = (CUdeviceptr)memory;
        return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **ret_memory, size_t n_bytes, unsigned int flags) {
        Range range = {.size = n_bytes, .kind = RANGE_HOST};
        Context *context;
        void *memory;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!ret_memory || !n_bytes || flags & ~HOST_ALLOC_FLAGS)
                return CUDA_ERROR_INVALID_VALUE;

        memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;

        range.start = (uintptr_t)memory;
        if (range_add(&range) < 0) {
                munmap(memory, n_bytes);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }

        *ret_memory = memory;
        return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *memory) {
        Context *context;
        Range range;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        r = stream_drain(context);
        if (r)
                return r;
        if (!range_remove((uintptr_t)memory, RANGE_HOST, &range))
                return CUDA_ERROR_INVALID_VALUE;

        munmap(memory, range.size);
        return CUDA_SUCCESS;
}
