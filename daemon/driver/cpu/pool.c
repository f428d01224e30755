/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool
 *
 * Stream-ordered memory. An allocation is a mapping between two inaccessible pages. It ends as
 * close to the upper page as its alignment permits, so that a kernel that writes past the end
 * faults. Freed memory is kept for later allocations of the same size, up to the release
 * threshold.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "driver/cpu/api.h"
#include "driver/cpu/range.h"
#include "driver/cpu/stream.h"

#define POOL_MAGIC 0x706f6f6cu
#define POOL_ALIGN 512u /* of pointers, bytes: as a GPU's pools have them, for textures */

typedef struct PoolBlock {
        struct CUmemPoolHandle_st *pool;
        LIST_ENTRY(PoolBlock) link; /* pool->used or pool->spare */
        char *memory;               /* after the lower guard page */
        size_t mapped;              /* bytes */
        size_t size;                /* of the allocation */
        uintptr_t pointer;
        bool freeing;
} PoolBlock;

typedef struct CUmemPoolHandle_st {
        uint32_t magic;
        Device *device;
        pthread_mutex_t lock;
        LIST_HEAD(, PoolBlock) used, spare;
        uint64_t settings[3]; /* stored without effect: memory is never reused early */
        uint64_t threshold;   /* bytes to keep */
        uint64_t reserved, reserved_high, in_use, in_use_high;
        size_t max_size; /* 0: none */
} Pool;

typedef struct PoolFree {
        Work work;
        PoolBlock *block;
} PoolFree;

/* ---- blocks ----------------------------------------------------------------------------- */

/* Eight sizes between one power of two and the next, so that blocks fit again. */
static size_t pool_round(size_t size) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), step = page;

        while (step * 16 < size)
                step *= 2;
        return (size + step - 1) / step * step;
}

static void pool_unmap(Pool *pool, PoolBlock *block) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);

        munmap(block->memory - page, block->mapped + 2 * page);
        device_uncharge(pool->device, block->mapped);
        pool->reserved -= block->mapped;
        LIST_REMOVE(block, link);
        free(block);
}

/* Give spare blocks back until no more than @keep bytes are reserved. */
static void pool_trim(Pool *pool, uint64_t keep) {
        while (pool->reserved > keep && !LIST_EMPTY(&pool->spare))
                pool_unmap(pool, LIST_FIRST(&pool->spare));
}

static CUresult pool_map(Pool *pool, size_t mapped, PoolBlock **ret_block) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        PoolBlock *block;
        char *memory;

        if (pool->max_size && pool->reserved + mapped > pool->max_size)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (device_charge(pool->device, mapped))
                return CUDA_ERROR_OUT_OF_MEMORY;

        block = calloc(1, sizeof(*block));
        memory = mmap(NULL, mapped + 2 * page, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!block || memory == MAP_FAILED ||
            mprotect(memory + page, mapped, PROT_READ | PROT_WRITE) < 0) {
                if (memory != MAP_FAILED)
                        munmap(memory, mapped + 2 * page);
                free(block);
                device_uncharge(pool->device, mapped);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }

        block->pool = pool;
        block->memory = memory + page;
        block->mapped = mapped;
        LIST_INSERT_HEAD(&pool->spare, block, link);
        pool->reserved += mapped;
        pool->reserved_high = MAX(pool->reserved_high, pool->reserved);
        *ret_block = block;
        return CUDA_SUCCESS;
}

/* A block of this size, spare or new. With the lock held. */
static CUresult pool_take(Pool *pool, size_t size, PoolBlock **ret_block) {
        size_t mapped = pool_round(size);
        PoolBlock *block;
        CUresult r;

        LIST_FOREACH (block, &pool->spare, link)
                if (block->mapped == mapped)
                        break;
        if (!block) {
                r = pool_map(pool, mapped, &block);
                if (r && !LIST_EMPTY(&pool->spare)) {
                        pool_trim(pool, 0);
                        r = pool_map(pool, mapped, &block);
                }
                if (r)
                        return r;
        }

        LIST_REMOVE(block, link);
        LIST_INSERT_HEAD(&pool->used, block, link);
        block->size = size;
        block->freeing = false;
        block->pointer = ((uintptr_t)block->memory + mapped - size) / POOL_ALIGN * POOL_ALIGN;
        pool->in_use += mapped;
        pool->in_use_high = MAX(pool->in_use_high, pool->in_use);
        *ret_block = block;
        return CUDA_SUCCESS;
}

static void pool_give(PoolBlock *block) {
        Pool *pool = block->pool;

        LIST_REMOVE(block, link);
        LIST_INSERT_HEAD(&pool->spare, block, link);
        pool->in_use -= block->mapped;
        pool_trim(pool, pool->threshold);
}

/* ---- the pool itself ---------------------------------------------------------------------- */

static CUresult pool_enter(Pool *pool, Context **ret_context) {
        CUresult r;

        r = context_enter(ret_context);
        if (r)
                return r;

        return pool && pool->magic == POOL_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *props) {
        Device *device;
        Pool *pool;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!ret_pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
            props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
                return CUDA_ERROR_NOT_SUPPORTED;
        device = device_find(props->location.id);
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;

        pool = calloc(1, sizeof(*pool));
        if (!pool)
                return CUDA_ERROR_OUT_OF_MEMORY;

        pool->magic = POOL_MAGIC;
        pool->device = device;
        pool->max_size = props->maxSize;
        pthread_mutex_init(&pool->lock, NULL);
        LIST_INIT(&pool->used);
        LIST_INIT(&pool->spare);
        for (size_t i = 0; i < ARRAY_SIZE(pool->settings); i++)
                pool->settings[i] = 1;
        *ret_pool = pool;
        return CUDA_SUCCESS;
}

/*
 * Memory that is still allocated is freed with the pool. CUDA would keep it until it is freed, but
 * here a pool outlives its context, and a caller that destroys the pool has no use for the memory.
 * This is possible after a fault, too.
 */
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
        PoolBlock *block;
        Range range;

        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (!pool || pool->magic != POOL_MAGIC)
                return CUDA_ERROR_INVALID_VALUE;

        while ((block = LIST_FIRST(&pool->used))) {
                range_remove(block->pointer, RANGE_POOL, &range);
                pool_unmap(pool, block);
        }
        pool_trim(pool, 0);
        pthread_mutex_destroy(&pool->lock);
        pool->magic = 0;
        free(pool);
        return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t n_bytes_keep) {
        Context *context;
        CUresult r;

        r = pool_enter(pool, &context);
        if (r)
                return r;

        pthread_mutex_lock(&pool->lock);
        pool_trim(pool, n_bytes_keep);
        pthread_mutex_unlock(&pool->lock);
        return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
        CUresult r = CUDA_SUCCESS;
        Context *context;

        r = pool_enter(pool, &context);
        if (r)
                return r;
        if (!value)
                return CUDA_ERROR_INVALID_VALUE;

        pthread_mutex_lock(&pool->lock);
        switch (attribute) {
                case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                        pool->settings[attribute - 1] = *(int *)value != 0;
                        break;
                case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                        pool->threshold = *(uint64_t *)value;
                        break;
                case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                        pool->reserved_high = pool->reserved;
                        break;
                case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                        pool->in_use_high = pool->in_use;
                        break;
                default:
                        r = CUDA_ERROR_INVALID_VALUE;
        }
        pthread_mutex_unlock(&pool->lock);
        return r;
}

static CUresult pool_attribute(const Pool *pool, CUmemPool_attribute attribute, void *ret_value) {
        switch (attribute) {
                case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                        *(int *)ret_value = (int)pool->settings[attribute - 1];
                        return CUDA_SUCCESS;
                case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                        *(uint64_t *)ret_value = pool->threshold;
                        return CUDA_SUCCESS;
                case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
                        *(uint64_t *)ret_value = pool->reserved;
                        return CUDA_SUCCESS;
                case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                        *(uint64_t *)ret_value = pool->reserved_high;
                        return CUDA_SUCCESS;
                case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
                        *(uint64_t *)ret_value = pool->in_use;
                        return CUDA_SUCCESS;
                case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                        *(uint64_t *)ret_value = pool->in_use_high;
                        return CUDA_SUCCESS;
                default:
                        return CUDA_ERROR_INVALID_VALUE;
        }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *ret_value) {
        Context *context;
        CUresult r;

        r = pool_enter(pool, &context);
        if (r)
                return r;
        if (!ret_value)
                return CUDA_ERROR_INVALID_VALUE;

        pthread_mutex_lock(&pool->lock);
        r = pool_attribute(pool, attribute, ret_value);
        pthread_mutex_unlock(&pool->lock);
        return r;
}

/* ---- allocating in a stream ------------------------------------------------------------------ */

static CUresult pool_alloc(Pool *pool, size_t size, CUdeviceptr *ret_pointer) {
        PoolBlock *block;
        Range range;
        CUresult r;

        pthread_mutex_lock(&pool->lock);
        r = pool_take(pool, size, &block);
        if (!r) {
                range = (Range){block->pointer, size, RANGE_POOL, block};
                if (range_add(&range)) {
                        pool_give(block);
                        r = CUDA_ERROR_OUT_OF_MEMORY;
                }
        }
        pthread_mutex_unlock(&pool->lock);
        if (r)
                return r;

        *ret_pointer = range.start;
        return CUDA_SUCCESS;
}

/* The pointer is valid at once, because no other work uses the block until a stream has freed
 * it. */
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret_pointer, size_t n_bytes, CUmemoryPool pool,
                                 CUstream handle) {
        Context *context;
        Stream *stream;
        CUresult r;

        r = pool_enter(pool, &context);
        if (!r)
                r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        if (!ret_pointer || !n_bytes)
                return CUDA_ERROR_INVALID_VALUE;
        if (n_bytes > pool->device->total)
                return CUDA_ERROR_OUT_OF_MEMORY;

        r = pool_alloc(pool, n_bytes, ret_pointer);
        if (r != CUDA_ERROR_OUT_OF_MEMORY)
                return r;

        /* Wait for earlier work of this stream, which may free memory. */
        r = stream_wait(stream);
        return r ? r : pool_alloc(pool, n_bytes, ret_pointer);
}

static CUresult pool_run_free(Work *work, Stream *stream) {
        PoolBlock *block = ((PoolFree *)work)->block;
        Pool *pool = block->pool;
        Range range;

        pthread_mutex_lock(&pool->lock);
        range_remove(block->pointer, RANGE_POOL, &range);
        pool_give(block);
        pthread_mutex_unlock(&pool->lock);
        return CUDA_SUCCESS;
}

static void pool_free_free(Work *work) {
        free(work);
}

static CUresult pool_claim(PoolBlock *block) {
        bool twice;

        pthread_mutex_lock(&block->pool->lock);
        twice = block->freeing;
        block->freeing = true;
        pthread_mutex_unlock(&block->pool->lock);
        return twice ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
        Context *context;
        Stream *stream;
        PoolFree *work;
        Range range;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        if (!range_find(pointer, RANGE_POOL, &range) || range.start != pointer)
                return CUDA_ERROR_INVALID_VALUE;
        r = pool_claim(range.owner);
        if (r)
                return r;

        work = calloc(1, sizeof(*work));
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;

        work->work = (Work){.n_refs = 1, .run = pool_run_free, .free = pool_free_free};
        work->block = range.owner;
        return stream_push(stream, &work->work);
}
