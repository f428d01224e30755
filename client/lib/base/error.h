/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_BASE_ERROR_H
#define GPUQ_BASE_ERROR_H

/*
 * Error
 *
 * The text of each thread's last failure, and the texts that gpuq_wait_id() lends. Both belong to
 * the thread and are freed when it ends.
 */

#include <string.h>

#include <gpuq.h>

#include "util/macro.h"

/** error_remember() - set the text of this thread's last failure. */
void error_remember(const char *format, ...) _printf_(1, 2);
/** error_set() - as error_remember(), for use in a return statement. Return: @error. */
#define error_set(error, ...) (error_remember(__VA_ARGS__), (error))
/** error_system() - set the text "@what: strerror(errno)". Return: GPUQ_E_SYSTEM. */
#define error_system(what) error_set(GPUQ_E_SYSTEM, "%s: %s", what, strerror(errno))
/** error_memory() - malloc() failed here, in this process. Return: GPUQ_E_SYSTEM. */
#define error_memory() error_set(GPUQ_E_SYSTEM, "this process is out of memory")
/** error_from_code() - the GPUQ_E_ of a gpuq.v1.Code; an unknown code becomes GPUQ_E_INTERNAL. */
int error_from_code(unsigned code);
/** error_lend_texts() - keep copies of two texts until this thread's next call. Return: 0 or GPUQ_E_SYSTEM. */
int error_lend_texts(const char *text, const char *output, const char **ret_text,
                     const char **ret_output);

#endif
