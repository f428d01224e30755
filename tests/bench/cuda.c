/* SPDX-License-Identifier: Apache-2.0 */

#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/macro.h"

int cuda_check(Cuda *cuda, CUresult result, const char *call) {
        const char *text = NULL;

        if (result == CUDA_SUCCESS)
                return 0;

        cuda->driver->cuGetErrorString(result, &text);
        fprintf(stderr, "%s: %s (%d)\n", call, text ? text : "?", (int)result);
        return -1;
}

typedef struct CudaImage {
        const char *folder, *name;
} CudaImage;

/* The first of the images that this driver takes; behind them is one without a name. */
static int cuda_load(Cuda *cuda, const CudaImage *images, const char *kernel,
                     CUfunction *ret_function) {
        CUmodule module;

        for (; images->name; images++) {
                _cleanup_(freep) void *image = bench_file(images->folder, images->name, NULL);

                if (!image || cuda->driver->cuModuleLoadData(&module, image) != CUDA_SUCCESS)
                        continue;

                CUDA_TRY(cuda, cuModuleGetFunction, ret_function, module, kernel);
                return 0;
        }
        fprintf(stderr, "no image of %s loads\n", kernel);
        return -1;
}

static int cuda_load_all(Cuda *cuda, const BenchOptions *options) {
        const CudaImage add[] = {
                {options->spins, "add.fatbin"},
                {options->kernels, "builtin.ptx"},
                {options->kernels, "builtin.cpu.so"},
                {},
        };
        const CudaImage spin[] = {
                {options->spins, "spin.ptx"}, {options->spins, "spin.cpu.so"}, {}};

        if (cuda_load(cuda, add, "add_f32", &cuda->add) < 0)
                return -1;
        if (!options->spin_ns)
                return 0;
        return cuda_load(cuda, spin, "spin_add_f32", &cuda->spin);
}

int cuda_open(Cuda *cuda, const BenchOptions *options, size_t n_bytes) {
        const char *problem = NULL;

        if (driver_open(options->driver, &cuda->driver, &problem) < 0) {
                fprintf(stderr, "%s\n", problem ? problem : options->driver);
                return -1;
        }
        CUDA_TRY(cuda, cuInit, 0);
        CUDA_TRY(cuda, cuCtxCreate, &cuda->context, 0, 0);
        if (cuda_load_all(cuda, options) < 0)
                return -1;

        cuda->n_bytes = n_bytes;
        CUDA_TRY(cuda, cuMemHostAlloc, (void **)&cuda->host, n_bytes, 0);
        CUDA_TRY(cuda, cuMemHostGetDevicePointer, &cuda->in_place, cuda->host, 0);
        return 0;
}

int cuda_want_device(Cuda *cuda) {
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
        CUmemoryPool pool;

        if (cuda->device)
                return 0;

        CUDA_TRY(cuda, cuMemPoolCreate, &pool, &props);
        CUDA_TRY(cuda, cuMemAllocFromPoolAsync, &cuda->device, cuda->n_bytes, pool, NULL);
        CUDA_TRY(cuda, cuStreamSynchronize, NULL);
        return 0;
}

/* All that is in a context goes with it. */
void cuda_close(Cuda *cuda) {
        if (cuda->context)
                cuda->driver->cuCtxDestroy(cuda->context);
        driver_close(cuda->driver);
}
