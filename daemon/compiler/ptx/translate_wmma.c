/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wmma: matrices of which only the instructions themselves know what each lane holds.
 */

#include <string.h>

#include "compiler/ptx/matrix_type.h"

typedef struct Shape {
        const char *name;
        unsigned m, n, k;
        const char *types; /* of A and B; the GPU's others are refused */
} Shape;

typedef enum Which { MATRIX_A, MATRIX_B, MATRIX_C } Which;

static const Shape *take_shape(Translator *t) {
        static const Shape shapes[] = {
                {"m16n16k16", 16, 16, 16, "f16 bf16 u8 s8"},
                {"m32n8k16", 32, 8, 16, "f16 bf16 u8 s8"},
                {"m8n32k16", 8, 32, 16, "f16 bf16 u8 s8"},
                {"m16n16k8", 16, 16, 8, "tf32"},
                {"m8n8k4", 8, 8, 4, "f64"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
                if (translator_take(t, shapes[i].name))
                        return &shapes[i];
        translator_refuse(t, "%s", "");
        return &shapes[0];
}

static unsigned n_rows(const Shape *shape, Which which) {
        return which == MATRIX_B ? shape->k : shape->m;
}

static unsigned n_columns(const Shape *shape, Which which) {
        return which == MATRIX_A ? shape->k : shape->n;
}

/* Of f16 the ISA has eight, more than A and B need. */
static size_t n_registers(const Shape *shape, Which which, const MatrixType *type) {
        size_t n = (size_t)n_rows(shape, which) * n_columns(shape, which) / 32;

        if (which != MATRIX_C && strcmp(type->name, "f16") == 0)
                return 8;
        return n / type->n_in_register;
}

static bool take_head(Translator *t) {
        return translator_take(t, "sync") && translator_take(t, "aligned");
}

/* A, B or C, and whether it is stored by columns. */
static Which take_which(Translator *t, bool *ret_by_columns) {
        const char *layout;
        Which which = translator_take(t, "a")   ? MATRIX_A
                      : translator_take(t, "b") ? MATRIX_B
                                                : MATRIX_C;

        if (which == MATRIX_C && !translator_take(t, "c") && !translator_take(t, "d"))
                translator_refuse(t, "%s", "");
        layout = translator_take_one(t, "row col");
        if (!layout)
                translator_refuse(t, "%s", "");
        *ret_by_columns = layout && strcmp(layout, "col") == 0;
        return which;
}

/* A type fits the shape as a factor, or as what products are added to. */
static bool fits(const Shape *shape, Which which, const MatrixType *type) {
        if (which != MATRIX_C)
                return translator_has(shape->types, type->name);
        if (translator_has(shape->types, "f64"))
                return strcmp(type->name, "f64") == 0;
        if (translator_has(shape->types, "tf32"))
                return strcmp(type->name, "f32") == 0;
        return translator_has("f16 f32 s32", type->name);
}

/* "tile, address, stride", the stride in elements; without one they lie side by side. */
static void print_place(Translator *t, const Shape *shape, Which which, bool by_columns,
                        size_t address, size_t stride, PtxSpace space) {
        fputs("&tile, ", t->out);
        translator_address(t, translator_operand(t, address), space);
        fputs(", ", t->out);
        if (t->in->n_operands > stride)
                translator_value(t, translator_operand(t, stride), PTX_U32);
        else
                fprintf(t->out, "%u", by_columns ? n_rows(shape, which) : n_columns(shape, which));
}

/* wmma.load.{a,b,c}.sync.aligned.LAYOUT.SHAPE{.ss}.TYPE {...}, [p] {, stride}; wmma.store.d [p], {...} {, stride} */
static void print_move(Translator *t, bool is_store) {
        bool by_columns, is_right = take_head(t);
        Which which = take_which(t, &by_columns);
        const Shape *shape = take_shape(t);
        PtxSpace space = translator_take_space(t);
        const MatrixType *type = matrix_type_take(t);
        size_t n = n_registers(shape, which, type);

        if (!is_right || !fits(shape, which, type))
                translator_refuse(t, "%s", "");
        fprintf(t->out, "{ static const PtxTile tile = {%u, %u, %s, %u}; uint64_t x[8] = ",
                n_rows(shape, which), n_columns(shape, which), type->number, by_columns);
        if (is_store)
                matrix_print_registers(t, 1, n, type);
        else
                fputs("{}", t->out);
        fprintf(t->out, "; ptx_wmma_%s(t, ", is_store ? "store" : "load");
        print_place(t, shape, which, by_columns, !is_store, 2, space);
        fputs(", x); ", t->out);
        if (!is_store)
                matrix_print_results(t, n, type, "x");
        fputs("}", t->out);
}

static bool has_more(const Translator *t) {
        for (size_t i = 1; i < t->n_parts; i++)
                if (!t->taken[i])
                        return true;
        return false;
}

/* wmma.mma.sync.aligned.LAYOUT.LAYOUT.SHAPE.D{.A.B}.C{.satfinite}; f16 names only D and C */
static void print_multiply(Translator *t) {
        bool is_right = take_head(t) && translator_take_one(t, "row col") &&
                        translator_take_one(t, "row col");
        const Shape *shape = take_shape(t);
        const MatrixType *d = matrix_type_take(t), *a = matrix_type_take(t), *b = a, *c = a;
        bool saturates = translator_take(t, "satfinite");

        if (translator_has(shape->types, "f64"))
                (void)translator_take(t, "rn");
        if (has_more(t)) {
                b = matrix_type_take(t);
                c = matrix_type_take(t);
        } else {
                a = b = matrix_type_find("f16");
        }
        if (!is_right || !translator_has(shape->types, a->name) || !matrix_type_fits(a, b, c, d))
                translator_refuse(t, "%s", "");
        fprintf(t->out,
                "{ static const PtxMma mma = {%u, %u, %u, %s, %s, %s, %s, %u}; PtxMmaCall m = "
                "{.mma = &mma, .a = ",
                shape->m, shape->n, shape->k, a->number, b->number, c->number, d->number,
                saturates);
        matrix_print_registers(t, 1, n_registers(shape, MATRIX_A, a), a);
        fputs(", .b = ", t->out);
        matrix_print_registers(t, 2, n_registers(shape, MATRIX_B, b), b);
        fputs(", .c = ", t->out);
        matrix_print_registers(t, 3, n_registers(shape, MATRIX_C, c), c);
        fputs("}; ptx_wmma(&m); ", t->out);
        matrix_print_results(t, n_registers(shape, MATRIX_C, d), d, "m.d");
        fputs("}", t->out);
}

bool translate_wmma(Translator *t, const char *name) {
        if (strcmp(name, "wmma") != 0)
                return false;

        if (translator_take(t, "load"))
                print_move(t, false);
        else if (translator_take(t, "store"))
                print_move(t, true);
        else if (translator_take(t, "mma"))
                print_multiply(t);
        else
                translator_refuse(t, "%s", "");
        return true;
}
