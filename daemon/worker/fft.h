/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_FFT_H
#define GPUQ_WORKER_FFT_H

/*
 * Fft
 *
 * Fourier transforms that were checked (util/fft.h), as a library is asked for them. Libraries overwrite what
 * they transform to real numbers, so that is copied to the workspace first.
 */

#include "driver/cuda_types.h"
#include "util/fft.h"

/* No padding: equal transforms have equal bytes. */
typedef struct Fft {
        uint32_t element; /* Gpuq__V1__Element */
        uint32_t form;    /* Gpuq__V1__Form */
        uint32_t inverse, rank;
        uint64_t lengths[FFT_RANK_MAX]; /* of all axes; unused ones are 0 */
        uint64_t batch;
        uint64_t from_bytes, to_bytes;
        uint64_t is_aligned; /* both sides, to FFT_ALIGNMENT */
} Fft;

#define FFT_ALIGNMENT 64u

typedef struct FftPlaces {
        CUdeviceptr from, to;
        CUdeviceptr workspace;
} FftPlaces;

/** fft_from_numbers() - of one transform, as the library counts them; fft_to_numbers() likewise. */
static inline uint64_t fft_side_numbers(const Fft *fft, bool is_real) {
        uint64_t n = 1;

        for (uint32_t i = 0; i + 1 < fft->rank; i++)
                n *= fft->lengths[i];
        if (is_real || fft->form == GPUQ__V1__FORM__COMPLEX)
                return n * fft->lengths[fft->rank - 1];
        return n * (fft->lengths[fft->rank - 1] / 2 + 1);
}
static inline uint64_t fft_from_numbers(const Fft *fft) {
        return fft_side_numbers(fft, fft->form == GPUQ__V1__FORM__REAL_TO_COMPLEX);
}
static inline uint64_t fft_to_numbers(const Fft *fft) {
        return fft_side_numbers(fft, fft->form == GPUQ__V1__FORM__COMPLEX_TO_REAL);
}

#endif
