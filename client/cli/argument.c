/* SPDX-License-Identifier: Apache-2.0 */
#include "argument.h"

#include <inttypes.h>
#include <string.h>

#include "exit.h"
#include "number.h"

typedef struct ScalarType {
        const char *name;
        char format; /* 'i', 'u', 'f' or 'b' */
        size_t size;
        gpuq_kind kind;
} ScalarType;

/* Those the library has no constructor for travel as bytes of their width. */
static const ScalarType scalar_types[] = {
        {"i8", 'i', 1, GPUQ_BYTES},  {"u8", 'u', 1, GPUQ_BYTES},   {"i16", 'i', 2, GPUQ_BYTES},
        {"u16", 'u', 2, GPUQ_BYTES}, {"i32", 'i', 4, GPUQ_I32},    {"u32", 'u', 4, GPUQ_I32},
        {"i64", 'i', 8, GPUQ_I64},   {"u64", 'u', 8, GPUQ_I64},    {"f32", 'f', 4, GPUQ_F32},
        {"f64", 'f', 8, GPUQ_F64},   {"bool", 'b', 1, GPUQ_BYTES},
};

#define ARGUMENT_FORMS                                                                             \
        "expected in:FILE, inout:FILE, out:FILE:DTYPE:N[,M...], null, local:BYTES or a scalar of " \
        "one "                                                                                     \
        "of the types "                                                                            \
        "i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 bool, such as i32:5"

int argument_name(const Argument *argument, Problem *problem, int code) {
        problem_prefix(problem, "argument %u `%s': ", argument->number, argument->text);
        return code;
}

static int scalar_range_problem(const ScalarType *type, Problem *problem) {
        unsigned bits = (unsigned)type->size * 8;

        if (type->format == 'f')
                return problem_set(problem, EXIT_USAGE, "out of range for %s", type->name);
        if (type->format == 'u')
                return problem_set(problem, EXIT_USAGE, "out of range for %s: 0 to %" PRIu64,
                                   type->name, UINT64_MAX >> (64 - bits));
        return problem_set(problem, EXIT_USAGE, "out of range for %s: %" PRId64 " to %" PRId64,
                           type->name, INT64_MIN >> (64 - bits), INT64_MAX >> (64 - bits));
}

static int scalar_bool(const char *text, uint64_t *ret_bits) {
        if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
                *ret_bits = 1;
        else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
                *ret_bits = 0;
        else
                return -EINVAL;
        return 0;
}

static int scalar_float(const char *text, size_t size, uint64_t *ret_bits) {
        double value;
        float narrow;
        int r;

        r = number_float(text, size == sizeof(narrow), &value);
        if (r < 0)
                return r;

        *ret_bits = 0;
        narrow = (float)value;
        memcpy(ret_bits, size == sizeof(narrow) ? (void *)&narrow : (void *)&value, size);
        return 0;
}

/* A negative number is a number, even if the type cannot hold it. */
static int scalar_unsigned(const char *text, uint64_t max, uint64_t *ret_bits) {
        int r;

        if (*text != '-')
                return number_unsigned(text, max, ret_bits);
        r = number_unsigned(text + 1, 0, ret_bits);
        return r == -EINVAL ? -EINVAL : -ERANGE;
}

static int scalar_parse(const ScalarType *type, const char *text, uint64_t *ret_bits) {
        unsigned shift = 64 - (unsigned)type->size * 8;
        int64_t value;
        int r;

        switch (type->format) {
                case 'b':
                        return scalar_bool(text, ret_bits);
                case 'f':
                        return scalar_float(text, type->size, ret_bits);
                case 'u':
                        return scalar_unsigned(text, UINT64_MAX >> shift, ret_bits);
                default:
                        r = number_signed(text, INT64_MIN >> shift, INT64_MAX >> shift, &value);
                        if (r < 0)
                                return r;
                        *ret_bits = (uint64_t)value;
                        return 0;
        }
}

static int argument_parse_scalar(Argument *argument, const ScalarType *type, const char *value,
                                 Problem *problem) {
        int r;

        argument->is_scalar = true;
        argument->kind = type->kind;
        argument->size = type->size;

        r = scalar_parse(type, value, &argument->bits);
        if (r == -ERANGE)
                return scalar_range_problem(type, problem);
        if (r < 0 && type->format == 'b')
                return problem_set(problem, EXIT_USAGE, "expected true or false");
        if (r < 0)
                return problem_set(problem, EXIT_USAGE, "not a number");
        return 0;
}

static int out_dtype(Argument *argument, const char *name, Problem *problem) {
        switch (dtype_from_name(name, &argument->array.dtype)) {
                case 0:
                        return 0;
                case DTYPE_E_AMBIGUOUS:
                        return problem_set(
                                problem, EXIT_USAGE,
                                "%s could mean 8 bits or numpy's 8 bytes: write %sint8 or %sint64",
                                name, *name == 'u' ? "u" : "", *name == 'u' ? "u" : "");
                case DTYPE_E_BIG_ENDIAN:
                        return problem_set(
                                problem, EXIT_USAGE,
                                "gpuq does not write big-endian files; expected one of %s",
                                dtype_names());
                default:
                        return problem_set(problem, EXIT_USAGE,
                                           "unknown dtype `%s'; expected one of %s", name,
                                           dtype_names());
        }
}

static int out_shape(Argument *argument, char *text, Problem *problem) {
        uint64_t shape[NPY_DIMS_MAX];
        unsigned n_dims = 0;

        for (char *rest = text; rest;) {
                char *word = strsep(&rest, ",");

                if (n_dims == NPY_DIMS_MAX)
                        return problem_set(problem, EXIT_USAGE, "more than %u dimensions",
                                           NPY_DIMS_MAX);
                if (number_unsigned(word, INT64_MAX, &shape[n_dims]) < 0)
                        return problem_set(
                                problem, EXIT_USAGE,
                                "`%s' is not a length; expected N[,M...] after the dtype", word);
                n_dims++;
        }

        if (npy_array_set_shape(&argument->array, shape, n_dims) < 0)
                return problem_set(problem, EXIT_USAGE, "the array is larger than any memory");
        return 0;
}

/* Split from the right, because a file's name may contain colons. */
static int argument_parse_out(Argument *argument, Problem *problem) {
        char *shape, *dtype = NULL;
        int r;

        shape = strrchr(argument->path, ':');
        if (shape) {
                *shape++ = '\0';
                dtype = strrchr(argument->path, ':');
        }
        if (!dtype)
                return problem_set(
                        problem, EXIT_USAGE,
                        "expected out:FILE:DTYPE:N[,M...], such as out:y.npy:float64:100");
        *dtype++ = '\0';

        r = out_dtype(argument, dtype, problem);
        if (r)
                return r;
        return out_shape(argument, shape, problem);
}

static int argument_parse_file(Argument *argument, gpuq_direction direction, const char *path,
                               Problem *problem) {
        int r;

        argument->direction = direction;
        argument->path = strdup(path);
        if (!argument->path)
                return problem_set(problem, EXIT_JOB_FAILED, "this process is out of memory");

        if (direction == GPUQ_OUT) {
                r = argument_parse_out(argument, problem);
                if (r)
                        return r;
        }
        if (!*argument->path)
                return problem_set(problem, EXIT_USAGE, "the file name is empty");
        return 0;
}

static int argument_parse_local(Argument *argument, const char *bytes, Problem *problem) {
        if (number_unsigned(bytes, UINT32_MAX, &argument->bits) < 0)
                return problem_set(problem, EXIT_USAGE, "`%s' is not a number of bytes", bytes);

        argument->is_scalar = true;
        argument->kind = GPUQ_LOCAL;
        argument->size = sizeof(uint64_t);
        return 0;
}

static int argument_parse_any(Argument *argument, Problem *problem) {
        static const char *const directions[] = {
                [GPUQ_IN] = "in", [GPUQ_OUT] = "out", [GPUQ_INOUT] = "inout"};
        const char *colon = strchr(argument->text, ':');
        size_t length = colon ? (size_t)(colon - argument->text) : 0;

        if (strcmp(argument->text, "null") == 0) {
                argument->is_scalar = true;
                argument->kind = GPUQ_NULL;
                argument->size = sizeof(uint64_t);
                return 0;
        }
        if (!colon)
                return problem_set(problem, EXIT_USAGE, ARGUMENT_FORMS);

        if (length == strlen("local") && memcmp(argument->text, "local", length) == 0)
                return argument_parse_local(argument, colon + 1, problem);

        for (size_t i = 0; i < ARRAY_SIZE(directions); i++)
                if (strlen(directions[i]) == length &&
                    memcmp(directions[i], argument->text, length) == 0)
                        return argument_parse_file(argument, (gpuq_direction)i, colon + 1, problem);
        for (size_t i = 0; i < ARRAY_SIZE(scalar_types); i++)
                if (strlen(scalar_types[i].name) == length &&
                    memcmp(scalar_types[i].name, argument->text, length) == 0)
                        return argument_parse_scalar(argument, &scalar_types[i], colon + 1,
                                                     problem);
        return problem_set(problem, EXIT_USAGE, "unknown type `%.*s'; " ARGUMENT_FORMS, (int)length,
                           argument->text);
}

int argument_parse(const char *text, unsigned number, Problem *problem, Argument *ret_argument) {
        Argument argument = {.text = text, .number = number};
        int r;

        r = argument_parse_any(&argument, problem);
        if (r) {
                argument_clear(&argument);
                return argument_name(&argument, problem, r);
        }

        *ret_argument = argument;
        return 0;
}

void argument_clear(Argument *argument) {
        free(argument->path);
        argument->path = NULL;
}
