/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CHECK_REWRITE_H
#define GPUQ_COMPILER_CHECK_REWRITE_H

/*
 * Check rewrite
 *
 * PTX to PTX whose kernels compare each access with the ranges of check.h. Before an instruction
 * that accesses memory stands a call of a function with the address and the number of the site;
 * everything else stays as it is. Pure. Any bytes are accepted without harm.
 */

#include <stddef.h>

typedef struct Checked {
        char *text; /* malloc()ed, with a zero byte behind it */
        size_t n_text;
        char *sites; /* likewise: check.h says what is in it */
} Checked;

enum {
        _CHECK_REWRITE_E_SUCCESS,
        CHECK_REWRITE_E_REFUSED, /* there is a message */
};

/**
 * check_rewrite()
 * @source_name: what messages call the source; a path that ends with it is replaced by it
 * @ret_error: with CHECK_REWRITE_E_REFUSED, one line; the caller's string
 *
 * Return: 0, CHECK_REWRITE_E_REFUSED, or -ENOMEM.
 */
int check_rewrite(const char *text, size_t n_text, const char *source_name, Checked *ret_checked,
                  char **ret_error);
/** checked_finish() - free what it holds. */
void checked_finish(Checked *checked);

#endif
