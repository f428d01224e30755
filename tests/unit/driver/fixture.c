/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

Driver *driver;
void *image;

void *fixture_read_file(const char *path, size_t *ret_size) {
        FILE *file = fopen(path, "rb");
        char *data;
        long size;

        assert_non_null(file);
        fseek(file, 0, SEEK_END);
        size = ftell(file);
        rewind(file);
        data = calloc(1, (size_t)size + 1);
        assert_non_null(data);
        assert_int_equal(fread(data, 1, (size_t)size, file), size);
        fclose(file);
        if (ret_size)
                *ret_size = (size_t)size;
        return data;
}

void fixture_driver_open(void) {
        const char *problem;

        setenv("GPUQ_CPU_DEVICES", "2", 1);
        setenv("GPUQ_CPU_THREADS", "3", 1);
        setenv("GPUQ_CPU_MEMORY", "1073741824", 1);
        if (driver_open(getenv("GPUQ_TEST_DRIVER"), &driver, &problem) < 0)
                fail_msg("%s", problem);
        assert_ok(driver->cuInit(0));
}

int fixture_another_process(int fd) {
        char argument[16];
        int status;
        pid_t pid;

        snprintf(argument, sizeof(argument), "%d", fd);
        pid = fork();
        if (pid == 0) {
                fcntl(fd, F_SETFD, 0);
                execl("/proc/self/exe", "another process", argument, NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

int fixture_open(void **state) {
        fixture_driver_open();
        image = fixture_read_file(getenv("GPUQ_TEST_IMAGE"), NULL);
        return 0;
}

int fixture_close(void **state) {
        free(image);
        driver = driver_close(driver);
        return 0;
}

Fixture *fixture_make(CUdevice device) {
        CUmemPoolProps props = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        };
        Fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        assert_ok(driver->cuCtxCreate(&fixture->context, CU_CTX_SCHED_BLOCKING_SYNC, device));
        for (int i = 0; i < 2; i++)
                assert_ok(driver->cuStreamCreateWithPriority(&fixture->streams[i],
                                                             CU_STREAM_NON_BLOCKING, 0));
        assert_ok(driver->cuMemPoolCreate(&fixture->pool, &props));
        assert_ok(driver->cuModuleLoadData(&fixture->module, image));
        return fixture;
}

void fixture_unmake(Fixture *fixture) {
        assert_ok(driver->cuCtxDestroy(fixture->context));
        assert_ok(driver->cuMemPoolDestroy(fixture->pool));
        free(fixture);
}

void fixture_run(void (*test)(void **state)) {
        void *fixture = fixture_make(0);

        test(&fixture);
        fixture_unmake(fixture);
}

CUdeviceptr fixture_alloc(Fixture *fixture, const void *from, size_t n_bytes) {
        CUdeviceptr pointer;

        assert_ok(driver->cuMemAllocFromPoolAsync(&pointer, n_bytes, fixture->pool,
                                                  fixture->streams[0]));
        if (from)
                assert_ok(driver->cuMemcpyHtoDAsync(pointer, from, n_bytes, fixture->streams[0]));
        else
                assert_ok(driver->cuMemsetD8Async(pointer, 0, n_bytes, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
        return pointer;
}

void fixture_fetch(Fixture *fixture, void *to, CUdeviceptr from, size_t n_bytes) {
        assert_ok(driver->cuMemcpyDtoHAsync(to, from, n_bytes, fixture->streams[0]));
        assert_ok(driver->cuStreamSynchronize(fixture->streams[0]));
}

CUfunction fixture_function(Fixture *fixture, const char *name) {
        CUfunction function;

        assert_ok(driver->cuModuleGetFunction(&function, fixture->module, name));
        return function;
}

CUresult fixture_launch(Fixture *fixture, int i, const char *name, unsigned grid, unsigned block,
                        unsigned shared, void **params) {
        CUlaunchConfig config = {
                .gridDimX = grid,
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = block,
                .blockDimY = 1,
                .blockDimZ = 1,
                .sharedMemBytes = shared,
                .hStream = fixture->streams[i],
        };

        return driver->cuLaunchKernelEx(&config, fixture_function(fixture, name), params, NULL);
}
