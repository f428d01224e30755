/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_RESULT_H
#define GPUQ_COMPILER_RESULT_H

/*
 * Result
 *
 * The outcome of a compilation, until it is packed as compiled.h describes. A compiler or linker
 * sets it. A compile error is a result, not a failure of this program.
 */

#include "compiler/compiled.h"
#include "compiler/signature.h"

typedef struct Result {
        CompiledStatus status;
        uint32_t flags;
        void *image; /* malloc()ed */
        size_t n_image;
        char *log;   /* malloc()ed, or NULL */
        char *sites; /* of a checked image (check.h), malloc()ed; else NULL */
        Signature *signature;
        char **named; /* symbols of the request's kernels, NULL where not known yet; NULL: none is */
        size_t n_named;
        bool uncacheable; /* a later compilation may give a better result */
} Result;

/** result_new() - COMPILED_OK, with nothing in it. Return: 0 or -ENOMEM. */
int result_new(Result **ret_result);
/** result_free() - NULL is fine. Return: NULL. */
Result *result_free(Result *result);
DEFINE_CLEANUP(Result, result_free)

/** result_fail() - end with a status and a text; the image is freed. Return: 0 or -ENOMEM. */
int result_fail(Result *result, CompiledStatus status, const char *format, ...) _printf_(3, 4);
/** result_retry() - COMPILED_OK again after a failure, without its text. */
void result_retry(Result *result);
/** result_add_log() - append to the log, bounded. Return: 0 or -ENOMEM. */
int result_add_log(Result *result, const char *text);
/** result_set_image() - copy an image. Return: 0 or -ENOMEM. */
int result_set_image(Result *result, const void *image, size_t n_image);
/** result_name() - the symbol of kernel @i of the request's @n; copied. Return: 0 or -ENOMEM. */
int result_name(Result *result, size_t n, size_t i, const char *symbol, size_t n_symbol);
/** result_pack() - as bytes, the caller's to free. Return: 0 or -ENOMEM. */
int result_pack(const Result *result, void **ret_data, size_t *ret_n_data);

#endif
