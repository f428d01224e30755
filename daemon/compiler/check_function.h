/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CHECK_FUNCTION_H
#define GPUQ_COMPILER_CHECK_FUNCTION_H

/*
 * The functions, in PTX, that a checked module calls before each access.
 */

#include <stdio.h>

#include "compiler/ptx/module.h"

/** check_functions_declare() - print the variable and the functions' heads, before all else. */
void check_functions_declare(FILE *out);
/**
 * check_functions_define() - print the functions, behind all else
 * @text: of the whole module: what it never mentions is not compared
 *
 * Accesses of the module's own variables are allowed.
 */
void check_functions_define(FILE *out, const PtxModule *module, PtxToken text);

#endif
