/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_PROBLEM_H
#define GPUQ_CLI_PROBLEM_H

/*
 * Problem
 *
 * The text of an error. It is set where the error is found, and main() prints it once. A text may
 * be long: a compiler's log is shown in full.
 */

#include "util/macro.h"

typedef struct Problem {
        char *text; /* NULL: none */
} Problem;

/**
 * problem_set() - replace the text
 * @code: returned as it is, so that a caller can say `return problem_set(p, EXIT_USAGE, …)`
 *
 * Return: @code.
 */
int problem_set(Problem *problem, int code, const char *format, ...) _printf_(3, 4);
/** problem_prefix() - put a text before the one that is there. */
void problem_prefix(Problem *problem, const char *format, ...) _printf_(2, 3);
/** problem_text() - never NULL. */
const char *problem_text(const Problem *problem);
/** problem_clear() - free the text; may be called twice. */
void problem_clear(Problem *problem);

#endif
