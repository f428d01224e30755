/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_NPY_H
#define GPUQ_CLI_NPY_H

/*
 * NPY
 *
 * Reads and writes numpy's published file format: versions 1.0, 2.0 and 3.0 in,
 * 1.0 out. The header is a Python dictionary literal; it is parsed strictly,
 * never evaluated. Data goes straight between file and the caller's memory.
 * Column-major ("Fortran order") arrays keep their order both ways.
 */

#include <stdbool.h>
#include <stdint.h>

#include "dtype.h"
#include "problem.h"

#define NPY_DIMS_MAX   64         /* numpy 2's limit */
#define NPY_HEADER_MAX (1u << 20) /* bytes of the dictionary; numpy writes less than 2 KiB */

typedef struct NpyArray {
        const Dtype *dtype;
        bool fortran_order;
        unsigned n_dims;
        uint64_t shape[NPY_DIMS_MAX];
        uint64_t n_elements;
        uint64_t n_bytes;
} NpyArray;

/**
 * npy_array_set_shape() - fill in the sizes of an array whose dtype is set
 *
 * Return: 0, or -EOVERFLOW when the bytes do not fit 63 bits.
 */
int npy_array_set_shape(NpyArray *array, const uint64_t *shape, unsigned n_dims);

/**
 * npy_parse_header() - parse the dictionary of a header
 * @name: the file, for the text of a problem
 *
 * Return: 0, or -EINVAL with @problem set.
 */
int npy_parse_header(const char *text, size_t n_text, const char *name, Problem *problem,
                     NpyArray *ret_array);

/**
 * npy_read_header() - read the header of an open file, which then stands at its data
 *
 * A regular file's size is checked against the header. Return: 0, or a negative
 * errno with @problem set.
 */
int npy_read_header(int fd, const char *name, Problem *problem, NpyArray *ret_array);
/** npy_read_data() - read the data into @data of n_bytes; nothing may follow. Return: as above. */
int npy_read_data(int fd, const char *name, const NpyArray *array, void *data, Problem *problem);

/** npy_write() - write header and data. Return: 0 or a negative errno. */
int npy_write(int fd, const NpyArray *array, const void *data);

#endif
