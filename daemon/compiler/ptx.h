/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_H
#define GPUQ_PTX_H

/*
 * PTX
 *
 * Reads what a PTX text declares at its outer level: entries with their
 * parameters, variables, and whether printf is called. Pure; checks nothing that
 * the assembler will check anyway, and takes any bytes without harm.
 */

#include "compiler/signature.h"

/** ptx_scan() - add what @text declares to @signature. Return: 0 or -ENOMEM. */
int ptx_scan(const char *text, size_t n_text, Signature *signature);

#endif
