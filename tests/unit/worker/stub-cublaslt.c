/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cuBLASLt that computes on the host, of f32 and f64, and counts columns first as the real one does. Its workspace
 * is a byte for each unit of the least alignment that it is told.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cublaslt_types.h"

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(member, symbol, arguments) EXPORT int symbol arguments;
LT_FUNCTIONS(DECLARE)

struct LtMatmulDesc {
        int compute, scale;
        int32_t forms[2];
};

struct LtMatrixLayout {
        int type;
        uint64_t rows, columns;
        int64_t ld, stride;
        int32_t batch;
};

struct LtMatmulPreference {
        uint32_t alignment;
};

/* For the test. */
extern EXPORT int n_heuristics, n_objects;
int n_heuristics, n_objects;

int cublasLtCreate(LtHandle *ret_handle) {
        *ret_handle = (LtHandle)&n_objects;
        return LT_SUCCESS;
}

static int make(size_t n_bytes, void *ret_object) {
        void *object = calloc(1, n_bytes);

        *(void **)ret_object = object;
        ++n_objects;
        return object ? LT_SUCCESS : LT_ALLOC_FAILED;
}

static int destroy(void *object) {
        --n_objects;
        free(object);
        return LT_SUCCESS;
}

int cublasLtMatmulDescCreate(LtDesc *ret_desc, int compute, int scale) {
        int status = make(sizeof(**ret_desc), ret_desc);

        if (status == LT_SUCCESS)
                **ret_desc = (struct LtMatmulDesc){.compute = compute, .scale = scale};
        return status;
}

int cublasLtMatmulDescDestroy(LtDesc desc) {
        return destroy(desc);
}

int cublasLtMatmulDescSetAttribute(LtDesc desc, int attribute, const void *value, size_t n_value) {
        memcpy(&desc->forms[attribute - LT_DESC_TRANSA], value, n_value);
        return LT_SUCCESS;
}

int cublasLtMatrixLayoutCreate(LtLayout *ret_layout, int type, uint64_t rows, uint64_t columns,
                               int64_t ld) {
        int status = make(sizeof(**ret_layout), ret_layout);

        if (status == LT_SUCCESS)
                **ret_layout = (struct LtMatrixLayout){type, rows, columns, ld, 0, 1};
        return status;
}

int cublasLtMatrixLayoutDestroy(LtLayout layout) {
        return destroy(layout);
}

int cublasLtMatrixLayoutSetAttribute(LtLayout layout, int attribute, const void *value,
                                     size_t n_value) {
        if (attribute == LT_LAYOUT_BATCH_COUNT)
                memcpy(&layout->batch, value, n_value);
        else
                memcpy(&layout->stride, value, n_value);
        return LT_SUCCESS;
}

int cublasLtMatmulPreferenceCreate(LtPreference *ret_preference) {
        int status = make(sizeof(**ret_preference), ret_preference);

        if (status == LT_SUCCESS)
                (*ret_preference)->alignment = 256;
        return status;
}

int cublasLtMatmulPreferenceDestroy(LtPreference preference) {
        return destroy(preference);
}

int cublasLtMatmulPreferenceSetAttribute(LtPreference preference, int attribute, const void *value,
                                         size_t n_value) {
        uint32_t alignment;

        if (attribute < LT_PREF_MIN_ALIGNMENT_A_BYTES)
                return LT_SUCCESS;
        memcpy(&alignment, value, n_value);
        if (alignment < preference->alignment)
                preference->alignment = alignment;
        return LT_SUCCESS;
}

static bool fits(const struct LtMatrixLayout *layout, int32_t form, uint64_t rows,
                 uint64_t columns) {
        if (form == LT_OP_T)
                return fits(layout, LT_OP_N, columns, rows);
        return layout->rows == rows && layout->columns == columns &&
               (uint64_t)layout->ld >= layout->rows;
}

/* As the real one, it refuses layouts that do not fit together. */
int cublasLtMatmulAlgoGetHeuristic(LtHandle handle, LtDesc desc, LtLayout a, LtLayout b, LtLayout c,
                                   LtLayout d, LtPreference preference, int n_wanted,
                                   LtHeuristic *ret_results, int *ret_n) {
        uint64_t k = desc->forms[0] == LT_OP_T ? a->rows : a->columns;

        (void)handle;
        ++n_heuristics;
        *ret_n = 0;
        if (n_wanted < 1 || (c->type != LT_R_32F && c->type != LT_R_64F) ||
            !fits(a, desc->forms[0], c->rows, k) || !fits(b, desc->forms[1], k, c->columns) ||
            !fits(d, LT_OP_N, c->rows, c->columns))
                return 15;
        *ret_results = (LtHeuristic){
                .workspace = preference->alignment,
                .algo.data = {(uint64_t)desc->compute},
        };
        *ret_n = 1;
        return LT_SUCCESS;
}

static double get(const void *matrix, const struct LtMatrixLayout *layout, int64_t at) {
        return layout->type == LT_R_32F ? (double)((const float *)matrix)[at]
                                        : ((const double *)matrix)[at];
}

static void put(void *matrix, const struct LtMatrixLayout *layout, int64_t at, double value) {
        if (layout->type == LT_R_32F)
                ((float *)matrix)[at] = (float)value;
        else
                ((double *)matrix)[at] = value;
}

/* Of the matrix that the form makes. */
static int64_t place(const struct LtMatrixLayout *layout, int32_t form, uint64_t row,
                     uint64_t column, int32_t batch) {
        if (form == LT_OP_T)
                return place(layout, LT_OP_N, column, row, batch);
        return (int64_t)row + (int64_t)column * layout->ld + batch * layout->stride;
}

int cublasLtMatmul(LtHandle handle, LtDesc desc, const void *alpha, const void *a,
                   LtLayout a_layout, const void *b, LtLayout b_layout, const void *beta,
                   const void *c, LtLayout c_layout, void *d, LtLayout d_layout, const LtAlgo *algo,
                   void *workspace, size_t n_workspace, CUstream stream) {
        uint64_t k = desc->forms[0] == LT_OP_T ? a_layout->rows : a_layout->columns;
        bool is_double = desc->scale == LT_R_64F;
        double x = is_double ? *(const double *)alpha : (double)*(const float *)alpha;
        double y = is_double ? *(const double *)beta : (double)*(const float *)beta;

        (void)handle;
        (void)stream;
        if (algo->data[0] != (uint64_t)desc->compute)
                return LT_EXECUTION_FAILED;
        memset(workspace, 0xee, n_workspace);
        for (int32_t batch = 0; batch < d_layout->batch; ++batch)
                for (uint64_t i = 0; i < d_layout->rows; ++i)
                        for (uint64_t j = 0; j < d_layout->columns; ++j) {
                                int64_t at = place(d_layout, LT_OP_N, i, j, batch);
                                double sum = 0;

                                for (uint64_t p = 0; p < k; ++p)
                                        sum += get(a, a_layout,
                                                   place(a_layout, desc->forms[0], i, p, batch)) *
                                               get(b, b_layout,
                                                   place(b_layout, desc->forms[1], p, j, batch));
                                sum *= x;
                                if (y != 0)
                                        sum += y * get(c, c_layout, at);
                                put(d, d_layout, at, sum);
                        }
        return LT_SUCCESS;
}
