/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_BATCH_H
#define GPUQ_COMPILER_BATCH_H

/*
 * Batch
 *
 * A kernel's twin that runs many jobs in one launch: blockIdx.z picks the job's
 * arguments. The compiler makes it, the worker launches it, both know this page.
 *
 * The twin of K is the entry K followed by BATCH_SUFFIX in the same module. It
 * takes one parameter, a table of BATCH_TABLE_BYTES by value: rows of
 * batch_pitch() bytes, each laid out as K's own parameters are (the offsets of
 * cuFuncGetParamInfo). Launched with K's grid, its z being the number of rows
 * instead of 1, it does for row z what K does alone with those arguments: K's own
 * reads of blockIdx.z and gridDim.z give 0 and 1 there. So only launches whose
 * grid has one layer, and that are neither cooperative nor in clusters, can be rows.
 *
 * There is none for a kernel of a module that names one so already, that reads %gridid, that asks for its layer of the grid
 * inside of a function that was not inlined, that uses clusters, a cooperative launch,
 * printf, device-side launch or module variables, whose arguments are too large for
 * two rows, or that is gpuq's own (util/symbol.h). No twin is no error: such jobs run one by one. A twin has limits of its
 * own, as of threads a block, which may be lower than K's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define BATCH_SUFFIX      "$gpuq_batch"
#define BATCH_TABLE_BYTES 4096u /* what every supported driver takes as arguments */
#define BATCH_ROWS_MIN    2u

/**
 * batch_is_name() - whether a kernel is called as a twin is
 *
 * It is one only where the module has twins of ours, which COMPILED_HAS_TWINS says: a
 * module with a user's kernel of such a name gets none.
 */
static inline bool batch_is_name(const char *symbol, size_t n_symbol) {
        size_t n_suffix = sizeof(BATCH_SUFFIX) - 1;

        return n_symbol > n_suffix &&
               memcmp(symbol + n_symbol - n_suffix, BATCH_SUFFIX, n_suffix) == 0;
}

/** batch_pitch() - bytes from row to row, of a kernel whose parameters end at @n_bytes. */
static inline size_t batch_pitch(size_t n_bytes) {
        return (n_bytes + 15) / 16 * 16;
}

/** batch_rows() - how many rows a table holds. @n_bytes: > 0. */
static inline size_t batch_rows(size_t n_bytes) {
        return BATCH_TABLE_BYTES / batch_pitch(n_bytes);
}

#endif
