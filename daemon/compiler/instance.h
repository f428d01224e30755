/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_INSTANCE_H
#define GPUQ_COMPILER_INSTANCE_H

/*
 * Instance
 *
 * Instances of templates that a request names, for a compiler program that has no option for that:
 * the source gets a variable with the address of each. The compiler then makes the instance, and
 * the variable's value in the PTX is the symbol. The variables are taken out of the PTX again.
 */

#include <stdio.h>

#include "compiler/request.h"
#include "compiler/result.h"

/** instance_write() - the variables, to stand behind the source. */
void instance_write(const Request *request, FILE *f);
/**
 * instance_blame() - which name the first error of a log is about
 * @log: cut into lines at the error
 *
 * Return: false: the error is in the source.
 */
bool instance_blame(const Request *request, char *log, const char **ret_name, const char **ret_why);
/** instance_take() - note the symbols, and remove the variables from @ptx. Return: 0 or -ENOMEM. */
int instance_take(const Request *request, Result *result, char *ptx);

#endif
