/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_PTX_H
#define GPUQ_COMPILER_PTX_H

/*
 * PTX
 *
 * Reads what a PTX text declares at its outer level: entries with their parameters, variables, and
 * whether printf is called. Pure. It does not check what the assembler checks, and accepts any
 * bytes without harm.
 */

#include "compiler/ptx/tokens.h"
#include "compiler/signature.h"

/** ptx_scan() - add what @text declares to @signature. Return: 0 or -ENOMEM. */
int ptx_scan(const char *text, size_t n_text, Signature *signature);
/**
 * ptx_variable() - what its declaration says of a variable
 * @type: .b8, if that is its directive's; @behind: what follows its name
 */
SignatureVariable ptx_variable(PtxToken name, PtxToken type, PtxTokens behind);

#endif
