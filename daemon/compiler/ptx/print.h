/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_PRINT_H
#define GPUQ_PTX_PRINT_H

/*
 * Print
 *
 * Instructions as text, from what was understood of them: numbers by their bits, names as they are, one blank or
 * mark between. What an assembler makes of that does not depend on how it splits words or reads numbers.
 */

#include <stdio.h>

#include "compiler/ptx/module.h"

/** ptx_print_operand() - without a blank before or behind it. */
void ptx_print_operand(FILE *out, const PtxOperand *operand);
/** ptx_print_instruction() - from its guard to its semicolon. */
void ptx_print_instruction(FILE *out, const PtxInstruction *instruction);

#endif
