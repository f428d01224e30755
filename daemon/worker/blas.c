/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAS
 *
 * CBLAS is declared here as far as it is used.
 */
#include "worker/blas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "util/open_library.h"

#define CBLAS_ROW_MAJOR 101

typedef enum CblasTranspose {
        CBLAS_NO_TRANSPOSE = 111,
        CBLAS_TRANSPOSE = 112,
} CblasTranspose;

struct Blas {
        void (*sgemm)(int order, CblasTranspose a_form, CblasTranspose b_form, int m, int n, int k,
                      float alpha, const float *a, int a_ld, const float *b, int b_ld, float beta,
                      float *c, int c_ld);
        void (*dgemm)(int order, CblasTranspose a_form, CblasTranspose b_form, int m, int n, int k,
                      double alpha, const double *a, int a_ld, const double *b, int b_ld,
                      double beta, double *c, int c_ld);
        void (*set_threads)(int n_threads); /* of OpenBLAS; NULL: another one */
};

Blas *blas_open(const char *folders, unsigned n_threads) {
        static const char *const names[] = {"libopenblas.so.0", "libblas.so.3", "libcblas.so.3",
                                            NULL};
        void *library = open_library(folders, names);
        Blas *blas = library ? calloc(1, sizeof(*blas)) : NULL;

        if (!blas)
                return NULL;
        *(void **)&blas->sgemm = dlsym(library, "cblas_sgemm");
        *(void **)&blas->dgemm = dlsym(library, "cblas_dgemm");
        *(void **)&blas->set_threads = dlsym(library, "openblas_set_num_threads");
        if (!blas->sgemm || !blas->dgemm) {
                free(blas);
                return NULL;
        }
        if (blas->set_threads && n_threads > 0)
                blas->set_threads((int)n_threads);
        return blas;
}

/* ---- halves -------------------------------------------------------------------------- */

static float bits_float(uint32_t bits) {
        float x;

        memcpy(&x, &bits, sizeof(x));
        return x;
}

static uint32_t float_bits(float x) {
        uint32_t bits;

        memcpy(&bits, &x, sizeof(bits));
        return bits;
}

/* The exponent is moved by a multiplication, which is exact for subnormal numbers too. */
static float f16_load(uint16_t x) {
        uint32_t magnitude = (uint32_t)(x & 0x7fff) << 13, sign = (uint32_t)(x & 0x8000) << 16;

        if (magnitude >= UINT32_C(0x7c00) << 13) /* infinite, or not a number */
                return bits_float(sign | magnitude | UINT32_C(0x7f800000));
        return bits_float(sign | float_bits(bits_float(magnitude) * 0x1p112f));
}

/* To the nearest, of two as near to the even one. */
static uint32_t round_bits(uint32_t bits, unsigned n_bits) {
        return (bits + (UINT32_C(1) << (n_bits - 1)) - 1 + (bits >> n_bits & 1)) >> n_bits;
}

static uint16_t f16_store(float x) {
        uint16_t sign = float_bits(x) >> 16 & 0x8000;
        uint32_t magnitude = float_bits(x) & 0x7fffffff;

        if (magnitude > 0x7f800000)
                return sign | 0x7e00;
        if (magnitude >= float_bits(65520.0f)) /* rounds to more than there is */
                return sign | 0x7c00;
        if (magnitude < float_bits(0x1p-14f)) /* subnormal: the sum's last place is 2^-24 */
                return sign |
                       (uint16_t)(float_bits(bits_float(magnitude) + 0.5f) - float_bits(0.5f));
        return sign | (uint16_t)(round_bits(magnitude, 13) - (UINT32_C(112) << 10));
}

static float bf16_load(uint16_t x) {
        return bits_float((uint32_t)x << 16);
}

static uint16_t bf16_store(float x) {
        if (x != x)
                return (uint16_t)(float_bits(x) >> 16 | 0x40);
        return (uint16_t)round_bits(float_bits(x), 16);
}

/* As it is stored. */
static uint64_t matrix_rows(const GemmMatrix *matrix, uint64_t rows, uint64_t columns) {
        return matrix->transposed ? columns : rows;
}

static void halves_load(const Gemm *gemm, const GemmMatrix *matrix, uint64_t rows, uint64_t columns,
                        const uint16_t *from, float *to) {
        float (*load)(uint16_t) = gemm->element == GPUQ__V1__ELEMENT__F16 ? f16_load : bf16_load;
        uint64_t n_rows = matrix_rows(matrix, rows, columns), n = rows * columns / n_rows;

        for (uint64_t i = 0; i < n_rows; i++)
                for (uint64_t j = 0; j < n; j++)
                        to[i * n + j] = load(from[i * matrix->ld + j]);
}

static void halves_store(const Gemm *gemm, const float *from, uint16_t *to) {
        uint16_t (*store)(float) = gemm->element == GPUQ__V1__ELEMENT__F16 ? f16_store : bf16_store;

        for (uint64_t i = 0; i < gemm->m; i++)
                for (uint64_t j = 0; j < gemm->n; j++)
                        to[i * gemm->c.ld + j] = store(from[i * gemm->n + j]);
}

/* ---- a product ------------------------------------------------------------------------ */

static bool gemm_is_half(const Gemm *gemm) {
        return element_bytes(gemm->element) == sizeof(uint16_t);
}

uint64_t blas_workspace(const Gemm *gemm) {
        if (!gemm_is_half(gemm))
                return 0;
        return (gemm->m * gemm->k + gemm->k * gemm->n + gemm->m * gemm->n) * sizeof(float);
}

static CblasTranspose matrix_form(const GemmMatrix *matrix) {
        return matrix->transposed ? CBLAS_TRANSPOSE : CBLAS_NO_TRANSPOSE;
}

static void half_gemm(const Blas *blas, const Gemm *gemm, const uint16_t *a, const uint16_t *b,
                      uint16_t *c, float *workspace) {
        float *wide_a = workspace, *wide_b = wide_a + gemm->m * gemm->k;
        float *wide_c = wide_b + gemm->k * gemm->n;

        halves_load(gemm, &gemm->a, gemm->m, gemm->k, a, wide_a);
        halves_load(gemm, &gemm->b, gemm->k, gemm->n, b, wide_b);
        if (gemm->beta != 0)
                halves_load(gemm, &gemm->c, gemm->m, gemm->n, c, wide_c);
        blas->sgemm(CBLAS_ROW_MAJOR, matrix_form(&gemm->a), matrix_form(&gemm->b), (int)gemm->m,
                    (int)gemm->n, (int)gemm->k, (float)gemm->alpha, wide_a,
                    (int)(gemm->a.transposed ? gemm->m : gemm->k), wide_b,
                    (int)(gemm->b.transposed ? gemm->k : gemm->n), (float)gemm->beta, wide_c,
                    (int)gemm->n);
        halves_store(gemm, wide_c, c);
}

static void single_gemm(const Blas *blas, const Gemm *gemm, const float *a, const float *b,
                        float *c) {
        blas->sgemm(CBLAS_ROW_MAJOR, matrix_form(&gemm->a), matrix_form(&gemm->b), (int)gemm->m,
                    (int)gemm->n, (int)gemm->k, (float)gemm->alpha, a, (int)gemm->a.ld, b,
                    (int)gemm->b.ld, (float)gemm->beta, c, (int)gemm->c.ld);
}

static void double_gemm(const Blas *blas, const Gemm *gemm, const double *a, const double *b,
                        double *c) {
        blas->dgemm(CBLAS_ROW_MAJOR, matrix_form(&gemm->a), matrix_form(&gemm->b), (int)gemm->m,
                    (int)gemm->n, (int)gemm->k, gemm->alpha, a, (int)gemm->a.ld, b, (int)gemm->b.ld,
                    gemm->beta, c, (int)gemm->c.ld);
}

void blas_gemm(const Blas *blas, const Gemm *gemm, const GemmPlaces *places) {
        uint64_t n_element = element_bytes(gemm->element);

        for (uint64_t i = 0; i < gemm->batch; i++) {
                void *a = (void *)(uintptr_t)(places->a + i * gemm->a.stride * n_element);
                void *b = (void *)(uintptr_t)(places->b + i * gemm->b.stride * n_element);
                void *c = (void *)(uintptr_t)(places->c + i * gemm->c.stride * n_element);

                if (gemm_is_half(gemm))
                        half_gemm(blas, gemm, a, b, c, (float *)(uintptr_t)places->workspace);
                else if (gemm->element == GPUQ__V1__ELEMENT__SINGLE)
                        single_gemm(blas, gemm, a, b, c);
                else
                        double_gemm(blas, gemm, a, b, c);
        }
}
