/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx/matrix_type.h"

#include <string.h>

static const MatrixType types[] = {
        {"f16", "PTX_MMA_F16", 2, 4, "f16 f32"}, {"bf16", "PTX_MMA_BF16", 2, 4, "f32"},
        {"tf32", "PTX_MMA_TF32", 1, 4, "f32"},   {"f32", "PTX_MMA_F32", 1, 4, ""},
        {"f64", "PTX_MMA_F64", 1, 8, "f64"},     {"u8", "PTX_MMA_U8", 4, 4, "s32"},
        {"s8", "PTX_MMA_S8", 4, 4, "s32"},       {"s32", "PTX_MMA_S32", 1, 4, ""},
};

const MatrixType *matrix_type_take(Translator *t) {
        for (size_t i = 1; i < t->n_parts; i++)
                for (size_t k = 0; !t->taken[i] && k < ARRAY_SIZE(types); k++)
                        if (ptx_token_is(t->parts[i], types[k].name)) {
                                t->taken[i] = true;
                                return &types[k];
                        }
        translator_refuse(t, "%s", "");
        return &types[0];
}

const MatrixType *matrix_type_find(const char *name) {
        size_t i = 0;

        while (strcmp(types[i].name, name) != 0)
                i++;
        return &types[i];
}

/* Signs may differ. */
bool matrix_type_fits(const MatrixType *a, const MatrixType *b, const MatrixType *c,
                      const MatrixType *d) {
        bool is_integer = strcmp(a->sums, "s32") == 0 && strcmp(b->sums, "s32") == 0;

        return (a == b || is_integer) && translator_has(a->sums, c->name) &&
               translator_has(a->sums, d->name);
}

const PtxOperand *matrix_element(Translator *t, size_t i, size_t n, size_t k) {
        const PtxOperand *operand = translator_operand(t, i);

        if (n != (operand->kind == PTX_VECTOR ? operand->n_elements : 1))
                translator_refuse(t, "operand %zu does not have %zu registers", i + 1, n);
        return operand->kind == PTX_VECTOR && k < operand->n_elements ? &operand->elements[k]
                                                                      : operand;
}

void matrix_print_registers(Translator *t, size_t i, size_t n, const MatrixType *type) {
        fputs("{", t->out);
        for (size_t k = 0; k < n && !t->r; k++) {
                translator_value(t, matrix_element(t, i, n, k),
                                 type->register_bytes == 8 ? PTX_B64 : PTX_B32);
                fputs(", ", t->out);
        }
        fputs("}", t->out);
}

void matrix_print_results(Translator *t, size_t n, const MatrixType *type, const char *from) {
        for (size_t k = 0; k < n && !t->r; k++) {
                translator_begin(t, matrix_element(t, 0, n, k), type->register_bytes);
                fprintf(t->out, "%s[%zu]; ", from, k);
        }
}
