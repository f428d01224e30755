/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the CPU driver: shared allocations, pools, host memory, copies, and
 * what is charged for them.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ONE (2u << 20)

static const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemAccessDesc access_all = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t size) {
        CUdeviceptr address;

        assert_ok(driver->cuMemAddressReserve(&address, size, 0, 0, 0));
        assert_ok(driver->cuMemMap(address, size, 0, handle, 0));
        assert_ok(driver->cuMemSetAccess(address, size, &access_all, 1));
        return address;
}

static void unmap(CUdeviceptr address, size_t size) {
        assert_ok(driver->cuMemUnmap(address, size));
        assert_ok(driver->cuMemAddressFree(address, size));
}

static size_t memory_free(void) {
        size_t n_free, n_total;

        assert_ok(driver->cuMemGetInfo(&n_free, &n_total));
        return n_free;
}

FIXTURE_TEST(an_allocation_is_shared_with_another_context) {
        Fixture *fixture = *state, *other;
        CUmemGenericAllocationHandle handle, imported;
        CUdeviceptr a, b;
        int fd, x = 0, value = 1234;
        size_t granularity;
        long long index = 5;

        assert_ok(driver->cuMemGetAllocationGranularity(&granularity, &prop, 0));
        assert_int_equal(granularity, ONE);
        assert_ok(driver->cuMemCreate(&handle, ONE, &prop, 0));
        a = map(handle, ONE);
        assert_ok(driver->cuMemExportToShareableHandle(&fd, handle, 1, 0));
        assert_ok(driver->cuMemRelease(handle));
        assert_ok(fixture_launch(fixture, 0, "store", 1, 1, 0, PARAMS(&a, &index, &value)));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));

        other = fixture_make(1);
        assert_ok(driver->cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1));
        close(fd);
        b = map(imported, ONE);
        assert_ok(driver->cuMemRelease(imported));
        assert_true(a != b);
        fixture_fetch(other, &x, b + 20, sizeof(x));
        assert_int_equal(x, 1234);
        unmap(a, ONE);
        fixture_fetch(other, &x, b + 20, sizeof(x));
        assert_int_equal(x, 1234);
        unmap(b, ONE);
        fixture_unmake(other);
        assert_ok(driver->cuCtxSetCurrent(fixture->context));
}

/* What fixture_another_process() does here. */
static int another_process(int fd) {
        CUmemGenericAllocationHandle handle;
        CUcontext context;
        CUstream stream;
        CUdeviceptr a;
        int x = 0;

        fixture_driver_open();
        if (driver->cuCtxCreate(&context, 0, 0) ||
            driver->cuStreamCreateWithPriority(&stream, 1, 0) ||
            driver->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1) ||
            driver->cuMemAddressReserve(&a, ONE, 0, 0, 0) ||
            driver->cuMemMap(a, ONE, 0, handle, 0) ||
            driver->cuMemSetAccess(a, ONE, &access_all, 1) ||
            driver->cuMemcpyDtoHAsync(&x, a, 4, stream) || driver->cuStreamSynchronize(stream))
                return 1;
        if (x != 41 || driver->cuMemsetD32Async(a, 42, 1, stream) ||
            driver->cuStreamSynchronize(stream))
                return 2;

        return 0;
}

FIXTURE_TEST(an_allocation_is_shared_with_another_process) {
        Fixture *fixture = *state;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr a;
        int fd, x = 0;

        assert_ok(driver->cuMemCreate(&handle, ONE, &prop, 0));
        a = map(handle, ONE);
        assert_ok(driver->cuMemExportToShareableHandle(&fd, handle, 1, 0));
        assert_ok(driver->cuMemsetD32Async(a, 41, 1, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        assert_int_equal(fixture_another_process(fd), 0);
        fixture_fetch(fixture, &x, a, sizeof(x));
        assert_int_equal(x, 42);
        close(fd);
        assert_ok(driver->cuMemRelease(handle));
        unmap(a, ONE);
}

FIXTURE_TEST(a_descriptor_of_something_else_is_not_imported) {
        CUmemGenericAllocationHandle handle;
        int fd = memfd_create("other", MFD_CLOEXEC);

        assert_int_equal(ftruncate(fd, ONE), 0);
        assert_int_equal(driver->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1),
                         CUDA_ERROR_INVALID_VALUE);
        close(fd);
        assert_int_equal(driver->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1),
                         CUDA_ERROR_INVALID_VALUE);
}

FIXTURE_TEST(mapped_memory_without_access_faults) {
        Fixture *fixture = *state;
        CUmemGenericAllocationHandle handle;
        long long index = 0;
        CUdeviceptr a;
        int value = 1;

        assert_ok(driver->cuMemCreate(&handle, ONE, &prop, 0));
        assert_ok(driver->cuMemAddressReserve(&a, ONE, 0, 0, 0));
        assert_ok(driver->cuMemMap(a, ONE, 0, handle, 0));
        assert_ok(fixture_launch(fixture, 0, "store", 1, 1, 0, PARAMS(&a, &index, &value)));
        assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]),
                         CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_ok(driver->cuCtxSetCurrent(NULL));
        unmap(a, ONE);
        assert_ok(driver->cuMemRelease(handle));
}

/* A page at each end, whatever lies beyond. */
FIXTURE_TEST(the_neighbours_of_a_mapping_fault) {
        CUmemGenericAllocationHandle handle;
        long long index[2] = {-1, ONE / 4};
        CUdeviceptr a;
        int value = 1;

        assert_ok(driver->cuMemCreate(&handle, ONE, &prop, 0));
        a = map(handle, ONE);
        for (int i = 0; i < 2; i++) {
                Fixture *fixture = fixture_make(0);

                assert_ok(fixture_launch(fixture, 0, "store", 1, 1, 0,
                                         PARAMS(&a, &index[i], &value)));
                assert_int_equal(driver->cuStreamSynchronize(fixture->streams[0]),
                                 CUDA_ERROR_ILLEGAL_ADDRESS);
                fixture_unmake(fixture);
        }
        unmap(a, ONE);
        assert_ok(driver->cuMemRelease(handle));
}

FIXTURE_TEST(wrong_sizes_and_ranges_are_refused) {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr a;

        assert_int_equal(driver->cuMemCreate(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemCreate(&handle, 1ull << 40, &prop, 0),
                         CUDA_ERROR_OUT_OF_MEMORY);
        assert_ok(driver->cuMemCreate(&handle, ONE, &prop, 0));
        assert_ok(driver->cuMemAddressReserve(&a, 2 * ONE, 0, 0, 0));
        assert_int_equal(driver->cuMemMap(a, 2 * ONE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemMap(a + 2 * ONE, ONE, 0, handle, 0),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuMemMap(a, ONE, 0, handle, 0));
        assert_int_equal(driver->cuMemMap(a, ONE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemSetAccess(a, 2 * ONE, &access_all, 1),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemAddressFree(a, 2 * ONE), CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuMemUnmap(a, ONE));
        assert_int_equal(driver->cuMemUnmap(a, ONE), CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuMemAddressFree(a, 2 * ONE));
        assert_ok(driver->cuMemRelease(handle));
}

FIXTURE_TEST(free_memory_is_what_is_not_allocated) {
        Fixture *fixture = *state;
        size_t before = memory_free();
        CUmemGenericAllocationHandle handle;
        uint64_t used;
        CUdeviceptr a;

        assert_ok(driver->cuMemCreate(&handle, 3 * ONE, &prop, 0));
        assert_int_equal(memory_free(), before - 3 * ONE);
        assert_ok(driver->cuMemRelease(handle));
        assert_int_equal(memory_free(), before);

        a = fixture_alloc(fixture, NULL, 1 << 20);
        assert_true(memory_free() <= before - (1 << 20));
        assert_ok(driver->cuMemPoolGetAttribute(fixture->pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                                &used));
        assert_int_equal(used, 1 << 20);
        assert_ok(driver->cuMemFreeAsync(a, fixture->streams[0]));
        assert_int_equal(driver->cuMemFreeAsync(a, fixture->streams[0]), CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        assert_int_equal(memory_free(), before);
}

FIXTURE_TEST(a_pool_keeps_what_it_may_keep) {
        Fixture *fixture = *state;
        uint64_t threshold = UINT64_MAX, reserved;
        CUdeviceptr a, b;

        assert_ok(driver->cuMemPoolSetAttribute(fixture->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                                &threshold));
        a = fixture_alloc(fixture, NULL, 100000);
        assert_ok(driver->cuMemFreeAsync(a, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        assert_ok(driver->cuMemPoolGetAttribute(fixture->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                                &reserved));
        assert_true(reserved >= 100000);
        b = fixture_alloc(fixture, NULL, 100000);
        assert_true(a == b);
        assert_ok(driver->cuMemFreeAsync(b, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        assert_ok(driver->cuMemPoolTrimTo(fixture->pool, 0));
        assert_ok(driver->cuMemPoolGetAttribute(fixture->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                                &reserved));
        assert_int_equal(reserved, 0);
}

/* In stream order the second allocation fits, though both at once do not. */
FIXTURE_TEST(memory_freed_in_a_stream_serves_its_next_allocation) {
        Fixture *fixture = *state;
        size_t size = 700u << 20;
        CUdeviceptr a, b;

        for (int i = 0; i < 5; i++) {
                assert_ok(driver->cuMemAllocFromPoolAsync(&a, size, fixture->pool,
                                                          fixture->streams[0]));
                assert_ok(driver->cuMemFreeAsync(a, fixture->streams[0]));
        }
        assert_ok(driver->cuMemAllocFromPoolAsync(&a, size, fixture->pool, fixture->streams[0]));
        assert_int_equal(
                driver->cuMemAllocFromPoolAsync(&b, size, fixture->pool, fixture->streams[0]),
                CUDA_ERROR_OUT_OF_MEMORY);
}

FIXTURE_TEST(host_memory_is_registered_once) {
        static _Alignas(4096) char memory[4 * 4096];
        CUdeviceptr pointer;

        assert_int_equal(driver->cuMemHostGetDevicePointer(&pointer, memory, 0),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuMemHostRegister(memory + 4096, 2 * 4096, CU_MEMHOSTREGISTER_PORTABLE));
        assert_int_equal(driver->cuMemHostRegister(memory + 4096, 2 * 4096, 0),
                         CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        assert_int_equal(driver->cuMemHostRegister(memory, 2 * 4096, 0),
                         CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        assert_int_equal(driver->cuMemHostRegister(memory + 8192, 4096, 0),
                         CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        assert_ok(driver->cuMemHostGetDevicePointer(&pointer, memory + 5000, 0));
        assert_true(pointer == (CUdeviceptr)(memory + 5000));
        assert_int_equal(driver->cuMemHostUnregister(memory),
                         CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        assert_int_equal(driver->cuMemHostUnregister(memory + 8192),
                         CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        assert_ok(driver->cuMemHostUnregister(memory + 4096));
        assert_int_equal(driver->cuMemHostUnregister(memory + 4096),
                         CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        assert_int_equal(driver->cuMemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemHostRegister((void *)4096, 4096, 0),
                         CUDA_ERROR_INVALID_VALUE);
}

FIXTURE_TEST(copies_out_of_range_are_refused) {
        Fixture *fixture = *state;
        CUdeviceptr a = fixture_alloc(fixture, NULL, 1000);
        CUstream stream = fixture->streams[0];
        char x[2000] = {0};

        assert_ok(driver->cuMemcpyHtoDAsync(a + 500, x, 500, stream));
        assert_int_equal(driver->cuMemcpyHtoDAsync(a + 500, x, 501, stream),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemcpyDtoHAsync(x, a - 1, 2, stream), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemcpyDtoDAsync(a, (CUdeviceptr)x, 2, stream),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemcpyHtoDAsync(0, x, 1, stream), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemsetD32Async(a + 2, 0, 1, stream), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuMemsetD32Async(a, 0, 251, stream), CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuMemcpyAsync((CUdeviceptr)x, a, 1000, stream));
        assert_ok(driver->cuMemsetD16Async(a, 0x1234, 500, stream));
        fixture_fetch(fixture, x, a, 1000);
        assert_int_equal(x[998], 0x34);
        assert_int_equal(x[999], 0x12);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                TEST(an_allocation_is_shared_with_another_context),
                TEST(an_allocation_is_shared_with_another_process),
                TEST(a_descriptor_of_something_else_is_not_imported),
                TEST(mapped_memory_without_access_faults),
                TEST(the_neighbours_of_a_mapping_fault),
                TEST(wrong_sizes_and_ranges_are_refused),
                TEST(free_memory_is_what_is_not_allocated),
                TEST(a_pool_keeps_what_it_may_keep),
                TEST(memory_freed_in_a_stream_serves_its_next_allocation),
                TEST(host_memory_is_registered_once),
                TEST(copies_out_of_range_are_refused),
        };

        if (argc > 1)
                _exit(another_process(atoi(argv[1])));
        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
