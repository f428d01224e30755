/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_NAMED_H
#define GPUQ_COMPILER_NAMED_H

/*
 * Named
 *
 * The kernels that a request names. A name with template arguments is an expression: the compiler
 * of the source makes that instance and tells its symbol. Any other name, and those of a module
 * that is not source, must be found among the kernels (util/kernel-name.h).
 */

#include "compiler/request.h"
#include "compiler/result.h"

/** named_is_expression() - whether the compiler of the source has to instantiate it. */
bool named_is_expression(const char *name);
/** named_resolve() - find the symbols that are not known, or end with COMPILED_NO_KERNEL. Return: 0 or -ENOMEM. */
int named_resolve(const Request *request, Result *result);
/**
 * named_fail() - end with COMPILED_NO_KERNEL and the names of the kernels there are
 * @why: what a compiler said of @name, or NULL
 *
 * Return: 0 or -ENOMEM.
 */
int named_fail(const Request *request, Result *result, const char *name, const char *why);

#endif
