/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_DTYPE_H
#define GPUQ_CLI_DTYPE_H

/*
 * Dtype
 *
 * The element types of NPY files that gpuq passes on: booleans, integers, floats
 * and complex numbers of fixed size, little-endian.
 */

#include <stddef.h>

typedef struct Dtype {
        char kind;        /* 'b', 'i', 'u', 'f' or 'c', as in an NPY header */
        size_t size;      /* bytes of one element */
        const char *name; /* numpy's, such as "float64" */
} Dtype;

enum {
        _DTYPE_E_SUCCESS,
        DTYPE_E_UNKNOWN,    /* no such type, or one without fixed-size numbers */
        DTYPE_E_BIG_ENDIAN, /* understood, but in the other byte order */
        DTYPE_E_AMBIGUOUS,  /* "i8": 8 bits here, 8 bytes in numpy */
};

/** dtype_from_descr() - of an NPY header's 'descr', such as "<f8". Return: 0, DTYPE_E_UNKNOWN, DTYPE_E_BIG_ENDIAN. */
int dtype_from_descr(const char *descr, const Dtype **ret_dtype);
/**
 * dtype_from_name() - of what a person types
 *
 * numpy's names (float64), numpy's codes (f8, <f8), and kind with bits as gpuq's
 * scalars have it (f64). Return: 0, or any DTYPE_E_.
 */
int dtype_from_name(const char *name, const Dtype **ret_dtype);
/** dtype_descr() - "<f8". @ret: at least 8 bytes. */
void dtype_descr(const Dtype *dtype, char *ret);
/** dtype_names() - every name, for messages. */
const char *dtype_names(void);

#endif
