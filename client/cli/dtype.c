/* SPDX-License-Identifier: Apache-2.0 */
#include "dtype.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are read and written without swapping: little-endian machines only"
#endif

static const Dtype dtypes[] = {
        {'b', 1, "bool"},      {'i', 1, "int8"},        {'i', 2, "int16"},   {'i', 4, "int32"},
        {'i', 8, "int64"},     {'u', 1, "uint8"},       {'u', 2, "uint16"},  {'u', 4, "uint32"},
        {'u', 8, "uint64"},    {'f', 2, "float16"},     {'f', 4, "float32"}, {'f', 8, "float64"},
        {'c', 8, "complex64"}, {'c', 16, "complex128"},
};

/* @text is a kind and a number, the number that of bytes or of bits. */
static const Dtype *dtype_by_code(const char *text, unsigned unit_bits) {
        for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
                char code[8];

                snprintf(code, sizeof(code), "%c%zu", dtypes[i].kind,
                         dtypes[i].size * 8 / unit_bits);
                if (strcmp(code, text) == 0)
                        return &dtypes[i];
        }
        return NULL;
}

static const Dtype *dtype_by_name(const char *text) {
        for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
                if (strcmp(dtypes[i].name, text) == 0)
                        return &dtypes[i];
        return NULL;
}

int dtype_from_descr(const char *descr, const Dtype **ret_dtype) {
        bool has_order = *descr && strchr("<>=|", *descr);
        const Dtype *dtype;

        dtype = dtype_by_code(descr + has_order, 8);
        if (!dtype)
                return DTYPE_E_UNKNOWN;
        if (*descr == '>' && dtype->size > 1)
                return DTYPE_E_BIG_ENDIAN;

        *ret_dtype = dtype;
        return 0;
}

int dtype_from_name(const char *name, const Dtype **ret_dtype) {
        const Dtype *dtype, *by_bits;

        if (*name && strchr("<>=|", *name))
                return dtype_from_descr(name, ret_dtype);

        dtype = dtype_by_name(name);
        if (!dtype) {
                dtype = dtype_by_code(name, 8);
                by_bits = dtype_by_code(name, 1);
                if (dtype && by_bits)
                        return DTYPE_E_AMBIGUOUS;
                dtype = dtype ? dtype : by_bits;
        }
        if (!dtype)
                return DTYPE_E_UNKNOWN;

        *ret_dtype = dtype;
        return 0;
}

void dtype_descr(const Dtype *dtype, char *ret) {
        snprintf(ret, 8, "%c%c%zu", dtype->size == 1 ? '|' : '<', dtype->kind, dtype->size);
}

const char *dtype_names(void) {
        return "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, "
               "float64, complex64, complex128";
}
