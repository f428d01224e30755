/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series
 */
#include "series.h"

#include <string.h>

#include "exit.h"
#include "util/macro.h"

/* Each letter of a form is an argument: an array that is read, r, or written, w; a u64, u. */
struct SeriesOperation {
        const char *name;
        const char *arguments; /* for messages */
        const char *form;
        int (*check)(const Operand *operands, size_t n_operands, Problem *problem);
        int (*append)(gpuq_job *job, const SeriesOperation *operation, const Operand *operands,
                      size_t n_operands);
        size_t n_least; /* arguments, at least: the others may be left out */
        bool is_other;  /* an exclusive scan, a descending sort */
        gpuq_distribution distribution;
};

static int operand_problem(const Operand *operand, Problem *problem, const char *text) {
        problem_set(problem, 0, "%s", text);
        return argument_name(operand->argument, problem, EXIT_USAGE);
}

static const NpyArray *operand_array(const Operand *operand) {
        return &operand->argument->array;
}

/* ---- checks --------------------------------------------------------------------------- */

static int letter_check(char letter, const Operand *operand, Problem *problem) {
        const Argument *argument = operand->argument;

        if (letter == 'u')
                return argument->is_scalar && argument->kind == GPUQ_I64
                               ? 0
                               : operand_problem(operand, problem, "expected u64:NUMBER");
        if (argument->is_scalar)
                return operand_problem(operand, problem, "expected an array");
        if (letter == 'r' && argument->direction != GPUQ_IN)
                return operand_problem(operand, problem, "it is only read: expected in:FILE");
        if (letter == 'w' && argument->direction == GPUQ_IN)
                return operand_problem(operand, problem, "it is written: expected out:FILE:...");
        if (argument->array.n_elements == 0)
                return operand_problem(operand, problem, "it has no elements");
        return 0;
}

static bool array_type(const NpyArray *array, gpuq_type *ret_type) {
        bool is_wide = array->dtype->size == 8;

        if (array->dtype->size != 4 && !is_wide)
                return false;
        switch (array->dtype->kind) {
                case 'f':
                        *ret_type = is_wide ? GPUQ_TYPE_F64 : GPUQ_TYPE_F32;
                        return true;
                case 'i':
                        *ret_type = is_wide ? GPUQ_TYPE_I64 : GPUQ_TYPE_I32;
                        return true;
                case 'u':
                        *ret_type = is_wide ? GPUQ_TYPE_U64 : GPUQ_TYPE_U32;
                        return true;
                default:
                        return false;
        }
}

static gpuq_type operand_type(const Operand *operand) {
        gpuq_type type = GPUQ_TYPE_F32;

        array_type(operand_array(operand), &type);
        return type;
}

static int operand_check_type(const Operand *operand, Problem *problem) {
        gpuq_type type;

        if (array_type(operand_array(operand), &type))
                return 0;
        return operand_problem(operand, problem,
                               "expected an array of float32, float64, int32, uint32, int64 or "
                               "uint64");
}

static bool array_is_like(const NpyArray *a, const NpyArray *b) {
        return a->dtype == b->dtype && a->n_dims == b->n_dims &&
               (a->n_dims < 2 || a->fortran_order == b->fortran_order) &&
               memcmp(a->shape, b->shape, a->n_dims * sizeof(*a->shape)) == 0;
}

/* ---- scan ------------------------------------------------------------------------------- */

static int scan_check(const Operand *operands, size_t n_operands, Problem *problem) {
        int r;

        r = operand_check_type(&operands[0], problem);
        if (r)
                return r;
        if (!array_is_like(operand_array(&operands[0]), operand_array(&operands[1])))
                return operand_problem(&operands[1], problem,
                                       "its type or shape is not that of argument 1");
        return 0;
}

static int scan_append(gpuq_job *job, const SeriesOperation *operation, const Operand *operands,
                       size_t n_operands) {
        gpuq_scan scan = {
                .type = operand_type(&operands[0]),
                .exclusive = operation->is_other,
                .n = operand_array(&operands[0])->n_elements,
                .from = operands[0].buffer,
                .to = operands[1].buffer,
        };

        return gpuq_job_scan(job, &scan);
}

/* ---- sort ------------------------------------------------------------------------------- */

static int sort_check(const Operand *operands, size_t n_operands, Problem *problem) {
        const NpyArray *keys = operand_array(&operands[0]);
        int r;

        r = scan_check(operands, n_operands, problem);
        if (r || n_operands == 2)
                return r;
        if (operand_array(&operands[2])->n_elements != keys->n_elements)
                return operand_problem(&operands[2], problem,
                                       "expected as many values as there are keys");
        if (operand_array(&operands[2])->dtype->size % 4)
                return operand_problem(&operands[2], problem,
                                       "expected values of a multiple of 4 bytes");
        if (!array_is_like(operand_array(&operands[2]), operand_array(&operands[3])))
                return operand_problem(&operands[3], problem,
                                       "its type or shape is not that of argument 3");
        return 0;
}

static int sort_append(gpuq_job *job, const SeriesOperation *operation, const Operand *operands,
                       size_t n_operands) {
        gpuq_sort sort = {
                .type = operand_type(&operands[0]),
                .descending = operation->is_other,
                .n = operand_array(&operands[0])->n_elements,
                .keys = operands[0].buffer,
                .to = operands[1].buffer,
        };

        if (n_operands > 2) {
                sort.value_bytes = (unsigned)operand_array(&operands[2])->dtype->size;
                sort.values = operands[2].buffer;
                sort.values_to = operands[3].buffer;
        }
        return gpuq_job_sort(job, &sort);
}

/* ---- random numbers ---------------------------------------------------------------------- */

static int bits_check(const Operand *operands, size_t n_operands, Problem *problem) {
        int r;

        r = operand_check_type(&operands[0], problem);
        if (r || operand_array(&operands[0])->dtype->kind != 'f')
                return r;
        return operand_problem(&operands[0], problem,
                               "random bits are for int32, uint32, int64 or uint64");
}

static int real_check(const Operand *operands, size_t n_operands, Problem *problem) {
        int r;

        r = operand_check_type(&operands[0], problem);
        if (r || operand_array(&operands[0])->dtype->kind == 'f')
                return r;
        return operand_problem(&operands[0], problem,
                               "these random numbers are for float32 or float64");
}

static int random_append(gpuq_job *job, const SeriesOperation *operation, const Operand *operands,
                         size_t n_operands) {
        gpuq_random random = {
                .distribution = operation->distribution,
                .type = operand_type(&operands[0]),
                .n = operand_array(&operands[0])->n_elements,
                .seed = operands[1].argument->bits,
                .offset = n_operands > 2 ? operands[2].argument->bits : 0,
                .to = operands[0].buffer,
        };

        return gpuq_job_random(job, &random);
}

/* ---- all of them --------------------------------------------------------------------------- */

static const SeriesOperation operations[] = {
        {"scan", "IN OUT", "rw", scan_check, scan_append, 2, false},
        {"exclusive_scan", "IN OUT", "rw", scan_check, scan_append, 2, true},
        {"sort", "KEYS SORTED [VALUES MOVED]", "rwrw", sort_check, sort_append, 2, false},
        {"sort_descending", "KEYS SORTED [VALUES MOVED]", "rwrw", sort_check, sort_append, 2, true},
        {"random_bits", "OUT SEED [OFFSET]", "wuu", bits_check, random_append, 2, false,
         GPUQ_RANDOM_BITS},
        {"random_uniform", "OUT SEED [OFFSET]", "wuu", real_check, random_append, 2, false,
         GPUQ_RANDOM_UNIFORM},
        {"random_normal", "OUT SEED [OFFSET]", "wuu", real_check, random_append, 2, false,
         GPUQ_RANDOM_NORMAL},
};

const SeriesOperation *series_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
                if (strcmp(operations[i].name, name) == 0)
                        return &operations[i];
        return NULL;
}

const char *series_name(size_t i) {
        return i < ARRAY_SIZE(operations) ? operations[i].name : NULL;
}

int series_check(const SeriesOperation *operation, const Operand *operands, size_t n_operands,
                 Problem *problem) {
        int r;

        if (n_operands != operation->n_least && n_operands != strlen(operation->form))
                return problem_set(problem, EXIT_USAGE,
                                   "library:%s takes the arguments %s, not %zu of them",
                                   operation->name, operation->arguments, n_operands);
        for (size_t i = 0; i < n_operands; i++) {
                r = letter_check(operation->form[i], &operands[i], problem);
                if (r)
                        return r;
        }
        return operation->check(operands, n_operands, problem);
}

int series_append(gpuq_job *job, const SeriesOperation *operation, const Operand *operands,
                  size_t n_operands) {
        int r = operation->append(job, operation, operands, n_operands);

        return r < 0 ? r : 0;
}
