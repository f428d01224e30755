/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_MATRIX_TYPE_H
#define GPUQ_PTX_MATRIX_TYPE_H

/*
 * Matrix type
 *
 * What elements of matrices may be, for the instructions that multiply them.
 */

#include "compiler/ptx/translator.h"

typedef struct MatrixType {
        const char *name;
        const char *number;     /* PtxMmaType of driver/cpu/ptx/matrix.h */
        unsigned n_in_register; /* elements */
        unsigned register_bytes;
        const char *sums; /* what products of them are added to; "": it is no factor */
} MatrixType;

/** matrix_type_take() - the next part of the opcode that is one. Return: never NULL. */
const MatrixType *matrix_type_take(Translator *t);
/** matrix_type_find() - by name, which must be one. */
const MatrixType *matrix_type_find(const char *name);
/** matrix_type_fits() - whether a b + c can be d. */
bool matrix_type_fits(const MatrixType *a, const MatrixType *b, const MatrixType *c,
                      const MatrixType *d);

/** matrix_element() - register @k of operand @i, which must have @n. */
const PtxOperand *matrix_element(Translator *t, size_t i, size_t n, size_t k);
/** matrix_print_registers() - print "{r1, r2, }", the @n registers of operand @i. */
void matrix_print_registers(Translator *t, size_t i, size_t n, const MatrixType *type);
/** matrix_print_results() - print "r1 = @from[0]; " and so on for the @n registers of operand 0. */
void matrix_print_results(Translator *t, size_t n, const MatrixType *type, const char *from);

#endif
