/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library
 */
#include "library.h"

#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "series.h"
#include "util/macro.h"

typedef struct LibraryOperation {
        const char *name;
        const char *arguments; /* for messages */
        size_t n_arguments;
        unsigned rank; /* of a transform; 0: a product */
        bool inverse;
} LibraryOperation;

static const LibraryOperation operations[] = {
        {"matmul", "A B C", 3, 0, false}, {"fft", "IN OUT", 2, 1, false},
        {"fft2", "IN OUT", 2, 2, false},  {"fft3", "IN OUT", 2, 3, false},
        {"ifft", "IN OUT", 2, 1, true},   {"ifft2", "IN OUT", 2, 2, true},
        {"ifft3", "IN OUT", 2, 3, true},
};

static const LibraryOperation *library_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
                if (strcmp(operations[i].name, name) == 0)
                        return &operations[i];
        return NULL;
}

static const NpyArray *operand_array(const Operand *operand) {
        return &operand->argument->array;
}

static int operand_problem(const Operand *operand, Problem *problem, const char *text) {
        problem_set(problem, 0, "%s", text);
        return argument_name(operand->argument, problem, EXIT_USAGE);
}

/* The last axes, counted from the end. */
static uint64_t array_length(const NpyArray *array, unsigned from_end) {
        return array->shape[array->n_dims - from_end];
}

/* Of all axes before the last @n. */
static uint64_t array_batch(const NpyArray *array, unsigned n) {
        uint64_t batch = 1;

        for (unsigned i = 0; i + n < array->n_dims; i++)
                batch *= array->shape[i];
        return batch;
}

static bool array_is_transposed(const NpyArray *array) {
        return array->fortran_order && array->n_dims == 2;
}

/* ---- products ----------------------------------------------------------------------- */

static bool product_type(const Dtype *dtype, gpuq_type *ret_type) {
        if (dtype->kind != 'f')
                return false;
        *ret_type = dtype->size == 2   ? GPUQ_TYPE_F16
                    : dtype->size == 4 ? GPUQ_TYPE_F32
                                       : GPUQ_TYPE_F64;
        return true;
}

static int product_check(const Operand *operands, Problem *problem) {
        const NpyArray *a = operand_array(&operands[0]), *b = operand_array(&operands[1]),
                       *c = operand_array(&operands[2]);
        gpuq_type type;

        for (size_t i = 0; i < 3; i++) {
                const NpyArray *array = operand_array(&operands[i]);

                if (!product_type(array->dtype, &type) || array->dtype != a->dtype)
                        return operand_problem(
                                &operands[i], problem,
                                "a product is of three arrays of float16, float32 or "
                                "float64");
                if (array->n_dims < 2 || array->n_elements == 0)
                        return operand_problem(&operands[i], problem,
                                               "expected a matrix, or several");
                if (array->fortran_order && (i == 2 || array->n_dims > 2))
                        return operand_problem(&operands[i], problem,
                                               "expected an array in row-major order");
                if (i < 2 && array_batch(array, 2) != 1 &&
                    array_batch(array, 2) != array_batch(c, 2))
                        return operand_problem(&operands[i], problem,
                                               "expected one matrix, or as many as the result has");
        }
        if (array_length(a, 1) != array_length(b, 2))
                return operand_problem(&operands[1], problem,
                                       "expected as many rows as A has columns");
        if (array_length(c, 2) != array_length(a, 2) || array_length(c, 1) != array_length(b, 1))
                return operand_problem(&operands[2], problem,
                                       "expected the rows of A and the columns of B");
        return 0;
}

static gpuq_matrix product_matrix(const Operand *operand) {
        const NpyArray *array = operand_array(operand);

        return (gpuq_matrix){
                .buffer = operand->buffer,
                .transposed = array_is_transposed(array),
                .stride = array_batch(array, 2) > 1
                                  ? array_length(array, 1) * array_length(array, 2)
                                  : 0,
        };
}

/* A result that is read is added to. */
static int product_append(gpuq_job *job, const Operand *operands) {
        const NpyArray *a = operand_array(&operands[0]), *c = operand_array(&operands[2]);
        gpuq_gemm gemm = {
                .m = array_length(c, 2),
                .n = array_length(c, 1),
                .k = array_length(a, 1),
                .batch = array_batch(c, 2),
                .alpha = 1,
                .beta = operands[2].argument->direction == GPUQ_INOUT,
                .a = product_matrix(&operands[0]),
                .b = product_matrix(&operands[1]),
                .c = product_matrix(&operands[2]),
        };

        product_type(a->dtype, &gemm.type);
        return gpuq_job_gemm(job, &gemm);
}

/* ---- transforms ---------------------------------------------------------------------- */

static bool dtype_is_double(const Dtype *dtype) {
        return dtype->size == (dtype->kind == 'c' ? 16 : 8);
}

static bool dtype_is_transformed(const Dtype *dtype) {
        return dtype->kind == 'c' || (dtype->kind == 'f' && dtype->size >= 4);
}

static gpuq_fft_form transform_form(const Operand *operands) {
        if (operand_array(&operands[0])->dtype->kind == 'f')
                return GPUQ_FFT_REAL_TO_COMPLEX;
        return operand_array(&operands[1])->dtype->kind == 'f' ? GPUQ_FFT_COMPLEX_TO_REAL
                                                               : GPUQ_FFT_COMPLEX;
}

/* Complex sides of real ones have the first half of the last axis. */
static bool transform_fits(const Operand *operands) {
        gpuq_fft_form form = transform_form(operands);
        const NpyArray *from = operand_array(&operands[0]), *to = operand_array(&operands[1]);
        const NpyArray *whole = form == GPUQ_FFT_COMPLEX_TO_REAL ? to : from;
        const NpyArray *other = whole == from ? to : from;
        uint64_t last = array_length(whole, 1);

        if (form != GPUQ_FFT_COMPLEX)
                last = last / 2 + 1;
        return from->n_dims == to->n_dims && array_length(other, 1) == last &&
               memcmp(from->shape, to->shape, (from->n_dims - 1) * sizeof(*from->shape)) == 0;
}

static int transform_check(const LibraryOperation *operation, const Operand *operands,
                           Problem *problem) {
        const NpyArray *from = operand_array(&operands[0]), *to = operand_array(&operands[1]);

        for (size_t i = 0; i < 2; i++) {
                const NpyArray *array = operand_array(&operands[i]);

                if (!dtype_is_transformed(array->dtype))
                        return operand_problem(&operands[i], problem,
                                               "a transform is of float32, float64, complex64 or "
                                               "complex128");
                if (array->n_dims < operation->rank || array->n_elements == 0)
                        return operand_problem(&operands[i], problem, "it has too few axes");
                if (array->fortran_order && array->n_dims > 1)
                        return operand_problem(&operands[i], problem,
                                               "expected an array in row-major order");
        }
        if (dtype_is_double(from->dtype) != dtype_is_double(to->dtype) ||
            (from->dtype->kind == 'f' && (to->dtype->kind == 'f' || operation->inverse)) ||
            (to->dtype->kind == 'f' && !operation->inverse))
                return operand_problem(&operands[1], problem,
                                       "its type is not that of the transform's result");
        if (!transform_fits(operands))
                return operand_problem(&operands[1], problem,
                                       "its shape is not that of the transform's result");
        return 0;
}

/* As numpy does: forth and back gives the same numbers. */
static int transform_scale(gpuq_job *job, gpuq_module *builtin, const Operand *operand,
                           double factor) {
        const NpyArray *array = operand_array(operand);
        uint64_t n = array->n_elements * (array->dtype->kind == 'c' ? 2 : 1);
        bool is_double = dtype_is_double(array->dtype);
        gpuq_config config = {.grid = {256}, .block = {256}};
        gpuq_arg args[] = {
                is_double ? gpuq_f64(factor) : gpuq_f32((float)factor),
                gpuq_in(operand->buffer),
                gpuq_inout(operand->buffer),
                gpuq_u64(n),
        };

        return gpuq_job_launch(job, builtin, is_double ? "scale_f64" : "scale_f32", &config, args,
                               ARRAY_SIZE(args));
}

static int transform_append(gpuq_job *job, gpuq_module *builtin, const LibraryOperation *operation,
                            const Operand *operands) {
        gpuq_fft_form form = transform_form(operands);
        const NpyArray *whole = operand_array(&operands[form == GPUQ_FFT_COMPLEX_TO_REAL]);
        gpuq_fft fft = {
                .type = dtype_is_double(whole->dtype) ? GPUQ_TYPE_F64 : GPUQ_TYPE_F32,
                .form = form,
                .inverse = operation->inverse,
                .rank = operation->rank,
                .batch = array_batch(whole, operation->rank),
                .from = operands[0].buffer,
                .to = operands[1].buffer,
        };
        double n = 1;
        int r;

        for (unsigned i = 0; i < operation->rank; i++) {
                fft.lengths[i] = array_length(whole, operation->rank - i);
                n *= (double)fft.lengths[i];
        }
        r = gpuq_job_fft(job, &fft);
        if (r < 0 || !operation->inverse)
                return r;
        return transform_scale(job, builtin, &operands[1], 1 / n);
}

/* ---- all of them ------------------------------------------------------------------------ */

static int library_unknown(const char *name, Problem *problem) {
        char list[512] = "";

        for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
                snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
                         operations[i].name);
        for (size_t i = 0; series_name(i); i++)
                snprintf(list + strlen(list), sizeof(list) - strlen(list), ", %s", series_name(i));
        return problem_set(problem, EXIT_USAGE, "library has no operation `%s'; it has: %s", name,
                           list);
}

int library_check(const char *name, const Operand *operands, size_t n_operands, Problem *problem) {
        const SeriesOperation *series = series_find(name);
        const LibraryOperation *operation = library_find(name);
        size_t last = operation ? operation->n_arguments - 1 : 0;

        if (series)
                return series_check(series, operands, n_operands, problem);
        if (!operation)
                return library_unknown(name, problem);
        if (n_operands != operation->n_arguments)
                return problem_set(problem, EXIT_USAGE,
                                   "library:%s takes %zu arguments (%s), not %zu", name,
                                   operation->n_arguments, operation->arguments, n_operands);
        for (size_t i = 0; i < n_operands; i++) {
                if (operands[i].argument->is_scalar)
                        return operand_problem(&operands[i], problem, "expected an array");
                if ((operands[i].argument->direction == GPUQ_IN) != (i < last))
                        return operand_problem(&operands[i], problem,
                                               i < last ? "it is only read: expected in:FILE"
                                                        : "it is written: expected out:FILE:...");
        }
        return operation->rank ? transform_check(operation, operands, problem)
                               : product_check(operands, problem);
}

int library_append(gpuq_job *job, gpuq_module *builtin, const char *name, const Operand *operands,
                   size_t n_operands) {
        const SeriesOperation *series = series_find(name);
        const LibraryOperation *operation = library_find(name);

        if (series)
                return series_append(job, series, operands, n_operands);
        return operation->rank ? transform_append(job, builtin, operation, operands)
                               : product_append(job, operands);
}
