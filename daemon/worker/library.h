/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_LIBRARY_H
#define GPUQ_WORKER_LIBRARY_H

/*
 * Library
 *
 * The libraries that compute a job's library operations: cuBLASLt (cublaslt.h) and cuFFT (cufft.h) on a GPU,
 * a BLAS (blas.h) and FFTW (fftw.h) with the CPU driver. Each is opened at the first operation that needs it.
 * Products that a library cannot compute, or on a machine without it, are left to gpuq's own kernels, which a
 * program then launches. Used by the
 * loop's thread alone.
 */

#include "worker/geometry.h"
#include "worker/operation.h"

typedef struct Library Library;

enum {
        _LIBRARY_E_SUCCESS,
        LIBRARY_E_NONE, /* no library on this machine can do it */
        LIBRARY_E_BUSY, /* planning may wait for running kernels: ask again when nothing runs */
};

/** library_new() - of a context, as context->library. @folders: of open_library(), or "none": no library is used. Return: 0 or -ENOMEM. */
int library_new(Context *context, const char *folders);
/** library_folders() - the folders of a setting that may be "none" or NULL. Return: NULL: there are none. */
const char *library_folders(const char *setting);
/** library_set_builtin() - where gpuq's own kernels are. */
void library_set_builtin(Library *library, const Image *image);

/** library_set_busy() - whether something runs on the device; before planning. NULL is fine. */
void library_set_busy(Library *library, bool is_busy);

typedef struct LibraryPlan {
        size_t n_workspace; /* bytes of device memory that it needs while it runs */
        bool is_new;        /* its first run may wait for running kernels */
} LibraryPlan;

/** library_plan_gemm() - whether a library can compute a product. Return: 0, LIBRARY_E_NONE or LIBRARY_E_BUSY. */
int library_plan_gemm(Library *library, const Gemm *gemm, LibraryPlan *ret_plan);
/** library_gemm() - issue a product that was planned. */
CUresult library_gemm(Library *library, const Gemm *gemm, const GemmPlaces *places,
                      CUstream stream);
/**
 * library_capture_gemm() - make a graph of it; one that has run before
 * @stream: used to capture; what it has to do is not affected
 * @ret_graph: the caller's
 */
CUresult library_capture_gemm(Library *library, const Gemm *gemm, const GemmPlaces *places,
                              CUstream stream, CUgraph *ret_graph);

/** library_plan_fft() - whether a library can transform. Return: as library_plan_gemm(). */
int library_plan_fft(Library *library, const Fft *fft, LibraryPlan *ret_plan);
/** library_fft() - issue transforms that were planned. */
CUresult library_fft(Library *library, const Fft *fft, const FftPlaces *places, CUstream stream);

/* A parameter of gpuq's own kernels, which kernels/library.cu has too. In elements. */
typedef struct LibraryGemm {
        uint64_t m, n, k, batch;
        uint64_t a, a_row, a_column, a_batch;
        uint64_t b, b_row, b_column, b_batch;
        uint64_t c, c_row, c_batch;
        double alpha, beta;
} LibraryGemm;

#define LIBRARY_VALUES 8u /* arguments of such a launch, at most */

/* What the scalars among the arguments of such a launch are read from. */
typedef struct LibraryArguments {
        LibraryGemm gemm;
        uint64_t alpha, beta; /* the bits, of the elements' type */
} LibraryArguments;

/**
 * library_launch_gemm() - make a launch of one of gpuq's own kernels
 * @arguments: lives as long as the launch, as does @launch->values, which has room for LIBRARY_VALUES
 *
 * Return: LIBRARY_E_NONE: the built-in kernels are not loaded.
 */
int library_launch_gemm(const Library *library, const ProgramGemm *step,
                        LibraryArguments *arguments, ProgramLaunch *launch);

#endif
