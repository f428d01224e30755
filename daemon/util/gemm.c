/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gemm
 */
#include "util/gemm.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/macro.h"

static const struct {
        const char *name, *gemm;
        unsigned n_bytes;
} elements[] = {
        [GPUQ__V1__ELEMENT__F16] = {"f16", "gemm_f16", 2},
        [GPUQ__V1__ELEMENT__BF16] = {"bf16", "gemm_bf16", 2},
        [GPUQ__V1__ELEMENT__SINGLE] = {"f32", "gemm_f32", 4},
        [GPUQ__V1__ELEMENT__DOUBLE] = {"f64", "gemm_f64", 8},
};

unsigned element_bytes(Gpuq__V1__Element element) {
        return (unsigned)element < ARRAY_SIZE(elements) ? elements[element].n_bytes : 0;
}

const char *element_name(Gpuq__V1__Element element) {
        return (unsigned)element < ARRAY_SIZE(elements) ? elements[element].name : "?";
}

const char *gemm_name(Gpuq__V1__Element element) {
        return (unsigned)element < ARRAY_SIZE(elements) ? elements[element].gemm : "gemm";
}

/* ---- one matrix -------------------------------------------------------------------- */

/* As it is stored. */
typedef struct GemmShape {
        uint64_t rows, columns;
} GemmShape;

static GemmShape gemm_shape(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix) {
        uint64_t rows = matrix == gemm->b ? gemm->k : gemm->m;
        uint64_t columns = matrix == gemm->a ? gemm->k : gemm->n;

        return matrix->transposed ? (GemmShape){columns, rows} : (GemmShape){rows, columns};
}

static bool gemm_steps(uint64_t n, uint64_t step, uint64_t *sum) {
        uint64_t length;

        return !__builtin_mul_overflow(n - 1, step, &length) &&
               !__builtin_add_overflow(*sum, length, sum);
}

uint64_t gemm_extent(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix) {
        GemmShape shape = gemm_shape(gemm, matrix);
        uint64_t extent = shape.columns;

        if (!gemm_steps(shape.rows, matrix->ld, &extent) ||
            !gemm_steps(gemm->batch, matrix->stride, &extent) ||
            __builtin_mul_overflow(extent, element_bytes(gemm->element), &extent))
                return UINT64_MAX;
        return extent;
}

uint64_t gemm_columns(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix) {
        return gemm_shape(gemm, matrix).columns;
}

static bool gemm_check_matrix(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix, char name,
                              uint64_t size, char *text, size_t n_text) {
        unsigned n_element = element_bytes(gemm->element);
        uint64_t columns = gemm_columns(gemm, matrix), extent;

        if (matrix->ld < columns || matrix->ld > GEMM_LENGTH_MAX) {
                snprintf(text, n_text,
                         "gemm: ld of %c is %" PRIu64 "; it must be at least its %" PRIu64
                         " columns, and at most %d",
                         name, matrix->ld, columns, GEMM_LENGTH_MAX);
                return false;
        }
        if (matrix->offset % n_element) {
                snprintf(text, n_text,
                         "gemm: offset %" PRIu64 " of %c is not a multiple of its elements' %u "
                         "bytes",
                         matrix->offset, name, n_element);
                return false;
        }

        extent = gemm_extent(gemm, matrix);
        if (matrix->offset <= size && extent <= size - matrix->offset)
                return true;
        snprintf(text, n_text,
                 "gemm: %c needs %" PRIu64 " bytes at offset %" PRIu64
                 ", but its buffer has %" PRIu64,
                 name, extent, matrix->offset, size);
        return false;
}

/* ---- what is written ------------------------------------------------------------------ */

/* One behind the other, or each in some columns of the same rows. */
static bool gemm_is_apart(const Gpuq__V1__Gemm *gemm) {
        const Gpuq__V1__Matrix *c = gemm->c;
        uint64_t end = gemm->n;

        if (gemm->batch == 1 || c->stride >= (gemm->m - 1) * c->ld + gemm->n)
                return true;
        return c->stride >= gemm->n && gemm_steps(gemm->batch, c->stride, &end) && end <= c->ld;
}

static bool gemm_meets(const Gpuq__V1__Gemm *gemm, const Gpuq__V1__Matrix *matrix) {
        const Gpuq__V1__Matrix *c = gemm->c;

        return matrix->buffer == c->buffer && matrix->offset < c->offset + gemm_extent(gemm, c) &&
               c->offset < matrix->offset + gemm_extent(gemm, matrix);
}

static bool gemm_check_result(const Gpuq__V1__Gemm *gemm, char *text, size_t n_text) {
        if (gemm->c->transposed)
                snprintf(text, n_text, "gemm: c cannot be transposed");
        else if (!gemm_is_apart(gemm))
                snprintf(text, n_text,
                         "gemm: stride %" PRIu64 " of c lets the matrices of the batch overlap",
                         gemm->c->stride);
        else if (gemm_meets(gemm, gemm->a))
                snprintf(text, n_text, "gemm: c overlaps a");
        else if (gemm_meets(gemm, gemm->b))
                snprintf(text, n_text, "gemm: c overlaps b");
        else
                return true;
        return false;
}

/* ---- all of it ------------------------------------------------------------------------ */

static bool gemm_check_length(const char *name, uint64_t length, char *text, size_t n_text) {
        if (length > 0 && length <= GEMM_LENGTH_MAX)
                return true;
        snprintf(text, n_text, "gemm: %s is %" PRIu64 "; it must be from 1 to %d", name, length,
                 GEMM_LENGTH_MAX);
        return false;
}

bool gemm_check(const Gpuq__V1__Gemm *gemm, const uint64_t sizes[static 3], char *text,
                size_t n_text) {
        if (!gemm->a || !gemm->b || !gemm->c) {
                snprintf(text, n_text, "gemm: a matrix is missing");
                return false;
        }
        if (!element_bytes(gemm->element)) {
                snprintf(text, n_text, "gemm: type %d is none of f16, bf16, f32 and f64",
                         (int)gemm->element);
                return false;
        }
        if (gemm->tf32 && gemm->element != GPUQ__V1__ELEMENT__SINGLE) {
                snprintf(text, n_text, "gemm: tf32 is for f32, not for %s",
                         element_name(gemm->element));
                return false;
        }
        return gemm_check_length("m", gemm->m, text, n_text) &&
               gemm_check_length("n", gemm->n, text, n_text) &&
               gemm_check_length("k", gemm->k, text, n_text) &&
               gemm_check_length("batch", gemm->batch, text, n_text) &&
               gemm_check_matrix(gemm, gemm->a, 'a', sizes[0], text, n_text) &&
               gemm_check_matrix(gemm, gemm->b, 'b', sizes[1], text, n_text) &&
               gemm_check_matrix(gemm, gemm->c, 'c', sizes[2], text, n_text) &&
               gemm_check_result(gemm, text, n_text);
}
