/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BENCH_CUDA_H
#define GPUQ_BENCH_CUDA_H

/*
 * Cuda
 *
 * A process's own context with the kernels in it, one block of pinned host memory
 * and one of device memory for all its jobs: a program that starts has as few
 * calls to make as can be.
 */

#include "bench.h"

#include "driver/driver.h"

typedef struct Cuda {
        Driver *driver;
        CUcontext context;
        CUfunction add;       /* a, b, c, n */
        CUfunction spin;      /* a, b, c, n, ns; if there is one */
        char *host;           /* pinned */
        CUdeviceptr in_place; /* the same, as the device sees it */
        CUdeviceptr device;   /* 0: not wanted yet */
        size_t n_bytes;       /* of each of the two */
} Cuda;

/** cuda_open() - on device 0, with @n_bytes of host memory. Return: 0, or -1 and it has said why. */
int cuda_open(Cuda *cuda, const BenchOptions *options, size_t n_bytes);
/** cuda_want_device() - there is device memory from here on. */
int cuda_want_device(Cuda *cuda);
void cuda_close(Cuda *cuda);
/** cuda_check() - says what failed. Return: 0, or -1. */
int cuda_check(Cuda *cuda, CUresult result, const char *call);

#define CUDA_TRY(cuda, name, ...)                                                                  \
        do {                                                                                       \
                if (cuda_check(cuda, (cuda)->driver->name(__VA_ARGS__), #name) < 0)                \
                        return -1;                                                                 \
        } while (0)

#endif
