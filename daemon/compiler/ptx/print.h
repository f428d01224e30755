/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_PRINT_H
#define GPUQ_PTX_PRINT_H

/*
 * Print
 *
 * This writes instructions as text, from what the reader understood of them: numbers by their bits, names as they are,
 * with marks between them and no comments. So an assembler cannot read other numbers or operands than the reader has.
 */

#include <stdio.h>

#include "compiler/ptx/module.h"

/** ptx_operand_print() - without a blank before or behind it. */
void ptx_operand_print(FILE *out, const PtxOperand *operand);
/** ptx_instruction_print() - from its guard to its semicolon. */
void ptx_instruction_print(FILE *out, const PtxInstruction *instruction);

#endif
