/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_FFT_H
#define GPUQ_UTIL_FFT_H

/*
 * Fft
 *
 * Whether a Fourier transform fits its buffers. The client library asks before it sends one, and the worker
 * before it runs one. Pure.
 */

#include "util/gemm.h"

#define FFT_RANK_MAX   3u
#define FFT_LENGTH_MAX INT32_MAX /* of an axis, of all together, and of the batch */

/** fft_name() - under which lists and the history have it. */
const char *fft_name(Gpuq__V1__Element element);
/** fft_bytes() - of one side of all transforms, which are checked. @is_result: of the written one. */
uint64_t fft_bytes(const Gpuq__V1__Fft *fft, bool is_result);
/**
 * fft_check() - check everything but the indices of buffers
 * @from_size, @to_size: of the buffers, in bytes
 * @text: why not, naming the argument
 */
bool fft_check(const Gpuq__V1__Fft *fft, uint64_t from_size, uint64_t to_size, char *text,
               size_t n_text);

#endif
