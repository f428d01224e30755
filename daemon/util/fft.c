/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fft
 */
#include "util/fft.h"

#include <inttypes.h>
#include <stdio.h>

static bool fft_has_element(const Gpuq__V1__Fft *fft) {
        return fft->element == GPUQ__V1__ELEMENT__SINGLE ||
               fft->element == GPUQ__V1__ELEMENT__DOUBLE;
}

const char *fft_name(Gpuq__V1__Element element) {
        return element == GPUQ__V1__ELEMENT__DOUBLE ? "fft_f64" : "fft_f32";
}

/* Whether this side has real numbers. */
static bool fft_is_real(const Gpuq__V1__Fft *fft, bool is_result) {
        return fft->form ==
               (is_result ? GPUQ__V1__FORM__COMPLEX_TO_REAL : GPUQ__V1__FORM__REAL_TO_COMPLEX);
}

/* With lengths that were checked: below 2^62 times the size of a number. */
static uint64_t fft_numbers(const Gpuq__V1__Fft *fft, bool is_result) {
        uint64_t n = fft->batch;

        for (size_t i = 0; i < fft->n_lengths; i++) {
                bool is_half = i == fft->n_lengths - 1 && fft->form != GPUQ__V1__FORM__COMPLEX &&
                               !fft_is_real(fft, is_result);

                n *= is_half ? fft->lengths[i] / 2 + 1 : fft->lengths[i];
        }
        return n;
}

uint64_t fft_bytes(const Gpuq__V1__Fft *fft, bool is_result) {
        unsigned n_number = element_bytes(fft->element) * (fft_is_real(fft, is_result) ? 1 : 2);
        uint64_t n_bytes;

        return __builtin_mul_overflow(fft_numbers(fft, is_result), n_number, &n_bytes) ? UINT64_MAX
                                                                                       : n_bytes;
}

static bool fft_check_lengths(const Gpuq__V1__Fft *fft, char *text, size_t n_text) {
        uint64_t all = 1;

        if (fft->n_lengths < 1 || fft->n_lengths > FFT_RANK_MAX) {
                snprintf(text, n_text, "fft: %zu axes; there must be 1 to %u", fft->n_lengths,
                         FFT_RANK_MAX);
                return false;
        }
        for (size_t i = 0; i < fft->n_lengths; i++) {
                if (fft->lengths[i] == 0 || fft->lengths[i] > FFT_LENGTH_MAX / all) {
                        snprintf(text, n_text,
                                 "fft: length %" PRIu64
                                 " of axis %zu; a transform must have from 1 "
                                 "to %d numbers",
                                 fft->lengths[i], i + 1, FFT_LENGTH_MAX);
                        return false;
                }
                all *= fft->lengths[i];
        }
        if (fft->batch > 0 && fft->batch <= FFT_LENGTH_MAX)
                return true;
        snprintf(text, n_text, "fft: batch is %" PRIu64 "; it must be from 1 to %d", fft->batch,
                 FFT_LENGTH_MAX);
        return false;
}

static bool fft_check_side(const Gpuq__V1__Fft *fft, bool is_result, uint64_t size, char *text,
                           size_t n_text) {
        uint64_t offset = is_result ? fft->to_offset : fft->from_offset;
        uint64_t n_bytes = fft_bytes(fft, is_result);
        unsigned n_complex = 2 * element_bytes(fft->element);
        const char *name = is_result ? "to" : "from";

        if (offset % n_complex) {
                snprintf(text, n_text,
                         "fft: offset %" PRIu64 " of %s is not a multiple of a complex number's %u "
                         "bytes",
                         offset, name, n_complex);
                return false;
        }
        if (offset <= size && n_bytes <= size - offset)
                return true;
        snprintf(text, n_text,
                 "fft: %s needs %" PRIu64 " bytes at offset %" PRIu64
                 ", but its buffer has %" PRIu64,
                 name, n_bytes, offset, size);
        return false;
}

bool fft_check(const Gpuq__V1__Fft *fft, uint64_t from_size, uint64_t to_size, char *text,
               size_t n_text) {
        if (!fft_has_element(fft) || (unsigned)fft->form > GPUQ__V1__FORM__COMPLEX_TO_REAL) {
                snprintf(text, n_text,
                         "fft: its numbers must be of f32 or f64, and of a known form");
                return false;
        }
        if (!fft_check_lengths(fft, text, n_text) ||
            !fft_check_side(fft, false, from_size, text, n_text) ||
            !fft_check_side(fft, true, to_size, text, n_text))
                return false;
        if (fft->from != fft->to || fft->from_offset >= fft->to_offset + fft_bytes(fft, true) ||
            fft->to_offset >= fft->from_offset + fft_bytes(fft, false))
                return true;
        snprintf(text, n_text, "fft: to overlaps from");
        return false;
}
