/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_FFTW_H
#define GPUQ_WORKER_FFTW_H

/*
 * FFTW
 *
 * Fourier transforms on the host, for the CPU driver. FFTW chooses its way without measuring, so
 * equal transforms have equal bits. Its choices are kept, and may be used by several threads.
 */

#include "worker/fft.h"

typedef struct Fftw Fftw;

/** fftw_open() - find it. @folders: of open_library(). Return: NULL: it is not on this machine. */
Fftw *fftw_open(const char *folders);
/** fftw_workspace() - bytes that a transform needs. */
uint64_t fftw_workspace(const Fft *fft);
/** fftw_transform() - transform now. Return: false: FFTW cannot, or has no memory. */
bool fftw_transform(Fftw *fftw, const Fft *fft, const FftPlaces *places);

#endif
