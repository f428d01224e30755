/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_CUFFT_H
#define GPUQ_WORKER_CUFFT_H

/*
 * cuFFT
 *
 * Fourier transforms on a GPU. A plan is kept for a shape; its work area is the caller's, another one for each
 * transform that may run at once.
 */

#include "driver/driver.h"
#include "worker/fft.h"

typedef struct Cufft Cufft;

/** cufft_open() - for the current context. Return: NULL: it is not on this machine. */
Cufft *cufft_open(const Driver *cu, const char *folders);
/** cufft_has_plan() - whether there is a plan; making one may wait for running kernels. */
bool cufft_has_plan(const Cufft *cufft, const Fft *fft);
/** cufft_plan() - find or make a plan. @ret_workspace: bytes that it needs. Return: false: cuFFT cannot. */
bool cufft_plan(Cufft *cufft, const Fft *fft, size_t *ret_workspace);
/** cufft_transform() - issue a transform. */
CUresult cufft_transform(Cufft *cufft, const Fft *fft, const FftPlaces *places, CUstream stream);

#endif
