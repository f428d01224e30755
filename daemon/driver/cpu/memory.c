/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory
 *
 * Device memory that can be shared with other processes. An allocation is a sealed memfd. An
 * address range is reserved with an inaccessible page on each side, and allocations are mapped
 * into it. Mapped memory is inaccessible until cuMemSetAccess(). An allocation is charged to its
 * device in the process that created it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "driver/cpu/api.h"
#include "driver/cpu/context.h"
#include "driver/cpu/range.h"
#include "util/macro.h"

#define MEMORY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

typedef struct Memory {
        _Atomic unsigned n_refs; /* its handle, and each mapping */
        Device *device;          /* charged; NULL for what was imported */
        int fd;
        size_t size;
} Memory;

static size_t memory_page(void) {
        return (size_t)sysconf(_SC_PAGESIZE);
}

static Memory *memory_unref(Memory *memory) {
        if (!memory || --memory->n_refs)
                return NULL;

        if (memory->device)
                device_uncharge(memory->device, memory->size);
        closep(&memory->fd);
        free(memory);
        return NULL;
}

DEFINE_CLEANUP(Memory, memory_unref)

/* Handles are pointers, so an invalid handle cannot be detected. */
static Memory *memory_find(CUmemGenericAllocationHandle handle) {
        return (Memory *)(uintptr_t)handle;
}

static int memory_make_fd(size_t size) {
        _cleanup_(closep) int fd = -1;

        fd = memfd_create("gpuq-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
                return -errno;
        if (fcntl(fd, F_ADD_SEALS, MEMORY_SEALS | F_SEAL_SEAL) < 0)
                return -errno;

        return TAKE_FD(fd);
}

static CUresult memory_check_prop(const CUmemAllocationProp *prop, Device **ret_device) {
        if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
            prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_NOT_SUPPORTED;

        *ret_device = device_find(prop->location.id);
        return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *ret_bytes, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option) {
        Device *device;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        r = memory_check_prop(prop, &device);
        if (r)
                return r;
        if (!ret_bytes || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_bytes = DEVICE_GRANULARITY;
        return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *ret_handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags) {
        _cleanup_(memory_unrefp) Memory *memory = NULL;
        Device *device;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        r = memory_check_prop(prop, &device);
        if (r)
                return r;
        if (!ret_handle || !size || size % DEVICE_GRANULARITY || flags)
                return CUDA_ERROR_INVALID_VALUE;

        memory = calloc(1, sizeof(*memory));
        if (!memory)
                return CUDA_ERROR_OUT_OF_MEMORY;

        memory->n_refs = 1;
        memory->size = size;
        memory->fd = -1;
        r = device_charge(device, size);
        if (r)
                return r;
        memory->device = device;
        memory->fd = memory_make_fd(size);
        if (memory->fd < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *ret_handle = (uintptr_t)TAKE_PTR(memory);
        return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!handle)
                return CUDA_ERROR_INVALID_VALUE;

        memory_unref(memory_find(handle));
        return CUDA_SUCCESS;
}

/* ---- addresses ------------------------------------------------------------------------ */

/* With a page on each side. Return: whether nothing else was there. */
static bool memory_reserve_at(size_t size, uintptr_t start) {
        size_t page = memory_page();
        void *at = (void *)(start - page), *memory;

        memory = mmap(at, size + 2 * page, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == at)
                return true;
        if (memory != MAP_FAILED)
                munmap(memory, size + 2 * page); /* a kernel before 4.17 takes it for a hint */
        return false;
}

/* The guard pages lie outside of the reservation, one at each end. */
static CUresult memory_reserve(size_t size, size_t alignment, uintptr_t *ret_start) {
        size_t page = memory_page(), whole = size + alignment + 2 * page;
        uintptr_t start, end;
        char *memory;

        memory = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;

        start = ((uintptr_t)memory + page + alignment - 1) / alignment * alignment;
        end = (uintptr_t)memory + whole;
        if (start - page > (uintptr_t)memory)
                munmap(memory, start - page - (uintptr_t)memory);
        if (end > start + size + page)
                munmap((void *)(start + size + page), end - (start + size + page));
        *ret_start = start;
        return CUDA_SUCCESS;
}

static void memory_unreserve(uintptr_t start, size_t size) {
        munmap((void *)(start - memory_page()), size + 2 * memory_page());
}

CUresult cuMemAddressReserve(CUdeviceptr *ret_address, size_t size, size_t alignment,
                             CUdeviceptr wish, unsigned long long flags) {
        Range range = {.size = size, .kind = RANGE_RESERVED};
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!ret_address || !size || size % DEVICE_GRANULARITY || flags ||
            (alignment & (alignment - 1)) || size > SIZE_MAX / 4 || alignment > SIZE_MAX / 4)
                return CUDA_ERROR_INVALID_VALUE;

        alignment = MAX(alignment, DEVICE_GRANULARITY);
        if (wish && wish % alignment == 0 && memory_reserve_at(size, wish))
                range.start = wish;
        else
                r = memory_reserve(size, alignment, &range.start);
        if (r)
                return r;
        if (range_add(&range)) {
                memory_unreserve(range.start, size);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }

        *ret_address = range.start;
        return CUDA_SUCCESS;
}

/* Whether any page of a reservation is still mapped. */
static bool memory_in_use(uintptr_t start, size_t size) {
        Range range;

        for (size_t i = 0; i < size; i += DEVICE_GRANULARITY)
                if (range_find(start + i, RANGE_MAPPED, &range))
                        return true;

        return false;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
        Range range;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!range_find(address, RANGE_RESERVED, &range) || range.start != address ||
            range.size != size || memory_in_use(address, size))
                return CUDA_ERROR_INVALID_VALUE;

        range_remove(address, RANGE_RESERVED, &range);
        memory_unreserve(address, size);
        return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
        Memory *memory = memory_find(handle);
        Range range = {address, size, RANGE_MAPPED, memory};
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        /* As in CUDA, an offset is not supported yet. */
        if (!memory || offset || flags || !size || size % DEVICE_GRANULARITY ||
            address % DEVICE_GRANULARITY || size > memory->size ||
            !range_covers(address, size, RANGE_RESERVED))
                return CUDA_ERROR_INVALID_VALUE;
        if (range_add(&range))
                return CUDA_ERROR_INVALID_VALUE;

        if (mmap((void *)(uintptr_t)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->fd,
                 0) == MAP_FAILED) {
                range_remove(address, RANGE_MAPPED, &range);
                return CUDA_ERROR_MAP_FAILED;
        }

        memory->n_refs++;
        return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
        Range range;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!range_find(address, RANGE_MAPPED, &range) || range.start != address ||
            range.size != size)
                return CUDA_ERROR_INVALID_VALUE;

        range_remove(address, RANGE_MAPPED, &range);
        if (mmap((void *)(uintptr_t)address, size, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
                return CUDA_ERROR_UNMAP_FAILED;

        memory_unref(range.owner);
        return CUDA_SUCCESS;
}

static int memory_protection(CUmemAccess_flags flags) {
        switch (flags) {
                case CU_MEM_ACCESS_FLAGS_PROT_NONE:
                        return PROT_NONE;
                case CU_MEM_ACCESS_FLAGS_PROT_READ:
                        return PROT_READ;
                case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
                        return PROT_READ | PROT_WRITE;
                default:
                        return -EINVAL;
        }
}

/* All devices are this machine, so access for one device is access for all. */
CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                        size_t n_access) {
        int protection = PROT_NONE;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!size || !access || !n_access || !range_covers(address, size, RANGE_MAPPED))
                return CUDA_ERROR_INVALID_VALUE;

        for (size_t i = 0; i < n_access; i++) {
                int one = memory_protection(access[i].flags);

                if (one < 0 || access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                        return CUDA_ERROR_INVALID_VALUE;
                if (!device_find(access[i].location.id))
                        return CUDA_ERROR_INVALID_DEVICE;
                protection |= one;
        }

        return mprotect((void *)(uintptr_t)address, size, protection) < 0 ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
}

/* ---- other processes -------------------------------------------------------------------- */

CUresult cuMemExportToShareableHandle(void *ret_shared, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
        Memory *memory = memory_find(handle);
        CUresult r;
        int fd;

        r = context_healthy();
        if (r)
                return r;
        if (!ret_shared || !memory || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_INVALID_VALUE;

        fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;

        *(int *)ret_shared = fd;
        return CUDA_SUCCESS;
}

/* Rejects a descriptor of something else, or of memory that could shrink while a kernel uses it. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret_handle, void *shared,
                                        CUmemAllocationHandleType type) {
        _cleanup_(memory_unrefp) Memory *memory = NULL;
        int fd = (int)(intptr_t)shared, seals;
        struct stat status;
        CUresult r;

        r = context_healthy();
        if (r)
                return r;
        if (!ret_handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                return CUDA_ERROR_INVALID_VALUE;
        seals = fcntl(fd, F_GET_SEALS);
        if (seals < 0 || (seals & MEMORY_SEALS) != MEMORY_SEALS || fstat(fd, &status) < 0 ||
            status.st_size <= 0 || status.st_size % DEVICE_GRANULARITY)
                return CUDA_ERROR_INVALID_VALUE;

        memory = calloc(1, sizeof(*memory));
        if (!memory)
                return CUDA_ERROR_OUT_OF_MEMORY;

        memory->n_refs = 1;
        memory->size = (size_t)status.st_size;
        memory->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (memory->fd < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;

        *ret_handle = (uintptr_t)TAKE_PTR(memory);
        return CUDA_SUCCESS;
}
