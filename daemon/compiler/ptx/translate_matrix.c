/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices whose elements are with lanes as the ISA says: mma, ldmatrix, stmatrix, movmatrix.
 */

#include <string.h>

#include "compiler/ptx/matrix_type.h"

typedef struct Shape {
        const char *name;
        unsigned n_rows, n_deep;
        const char *types; /* of A and B; the GPU's others are refused */
} Shape;

typedef struct Mma {
        const Shape *shape;
        const MatrixType *a, *b, *c, *d;
        bool saturates;
} Mma;

static const Shape *take_shape(Translator *t) {
        static const Shape shapes[] = {
                {"m16n8k16", 16, 16, "f16 bf16 u8 s8 f64"},
                {"m16n8k8", 16, 8, "f16 bf16 tf32 f64"},
                {"m16n8k4", 16, 4, "tf32 f64"},
                {"m16n8k32", 16, 32, "u8 s8"},
                {"m8n8k16", 8, 16, "u8 s8"},
                {"m8n8k4", 8, 4, "f64"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
                if (translator_take(t, shapes[i].name))
                        return &shapes[i];
        translator_refuse(t, "%s", "");
        return &shapes[0];
}

/* mma.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C */
static Mma take_mma(Translator *t) {
        bool is_right = translator_take(t, "sync") && translator_take(t, "aligned") &&
                        translator_take(t, "row") && translator_take(t, "col");
        Mma mma = {.saturates = translator_take(t, "satfinite")};

        if (translator_take(t, "sp") || translator_take(t, "sp::ordered_metadata"))
                translator_refuse(t, "sparse products (mma.sp) are not available on it");

        mma.shape = take_shape(t);
        mma.d = matrix_type_take(t);
        mma.a = matrix_type_take(t);
        mma.b = matrix_type_take(t);
        mma.c = matrix_type_take(t);
        if (!is_right || !translator_has(mma.shape->types, mma.a->name) ||
            !matrix_type_fits(mma.a, mma.b, mma.c, mma.d))
                translator_refuse(t, "%s", "");
        return mma;
}

static void print_mma(Translator *t) {
        Mma mma = take_mma(t);
        unsigned n_rows = mma.shape->n_rows, n_deep = mma.shape->n_deep;

        fprintf(t->out,
                "{ static const PtxMma mma = {%u, 8, %u, %s, %s, %s, %s, %u}; PtxMmaCall m = {.mma "
                "= &mma, .a = ",
                n_rows, n_deep, mma.a->number, mma.b->number, mma.c->number, mma.d->number,
                mma.saturates);
        matrix_print_registers(t, 1, (size_t)n_rows * n_deep / 32 / mma.a->n_in_register, mma.a);
        fputs(", .b = ", t->out);
        matrix_print_registers(t, 2, (size_t)n_deep / 4 / mma.b->n_in_register, mma.b);
        fputs(", .c = ", t->out);
        matrix_print_registers(t, 3, (size_t)n_rows / 4 / mma.c->n_in_register, mma.c);
        fputs("}; ptx_mma(&m); ", t->out);
        matrix_print_results(t, (size_t)n_rows / 4 / mma.d->n_in_register, mma.d, "m.d");
        fputs("}", t->out);
}

/* ---- 8 x 8 matrices ----------------------------------------------------------------- */

typedef struct Tiles {
        size_t n;
        bool is_transposed;
        PtxSpace space;
} Tiles;

/* {ld,st}matrix.sync.aligned.m8n8.xN{.trans}{.shared}.b16 */
static Tiles take_tiles(Translator *t) {
        static const char *const numbers[] = {[1] = "x1", [2] = "x2", [4] = "x4"};
        Tiles tiles = {.is_transposed = translator_take(t, "trans")};

        for (size_t n = 1; n < ARRAY_SIZE(numbers); n++)
                if (numbers[n] && translator_take(t, numbers[n]))
                        tiles.n = n;
        tiles.space = translator_take_space(t);
        if (!tiles.n || !translator_take(t, "sync") || !translator_take(t, "aligned") ||
            !translator_take(t, "m8n8") || translator_take_type(t) != PTX_B16)
                translator_refuse(t, "%s", "");
        return tiles;
}

/* What registers of 32 bits hold. */
static const MatrixType words = {"b32", "", 1, 4, ""};

static void print_load_tiles(Translator *t) {
        Tiles tiles = take_tiles(t);

        fprintf(t->out, "{ PtxTilesCall m = {.n = %zu, .is_transposed = %u}; ptx_ldmatrix(t, &m, ",
                tiles.n, tiles.is_transposed);
        translator_address(t, translator_operand(t, 1), tiles.space);
        fputs("); ", t->out);
        matrix_print_results(t, tiles.n, &words, "m.parts");
        fputs("}", t->out);
}

static void print_store_tiles(Translator *t) {
        Tiles tiles = take_tiles(t);

        fprintf(t->out, "{ PtxTilesCall m = {.n = %zu, .is_transposed = %u, .parts = ", tiles.n,
                tiles.is_transposed);
        matrix_print_registers(t, 1, tiles.n, &words);
        fputs("}; ptx_stmatrix(t, &m, ", t->out);
        translator_address(t, translator_operand(t, 0), tiles.space);
        fputs("); }", t->out);
}

static void print_move_tile(Translator *t) {
        if (!translator_take(t, "sync") || !translator_take(t, "aligned") ||
            !translator_take(t, "m8n8") || !translator_take(t, "trans") ||
            translator_take_type(t) != PTX_B16) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), 4);
        fputs("ptx_movmatrix(", t->out);
        translator_value(t, translator_operand(t, 1), PTX_B32);
        fputs(");", t->out);
}

bool translate_matrix(Translator *t, const char *name) {
        static const struct {
                const char *name;
                void (*print)(Translator *t);
        } table[] = {
                {"mma", print_mma},
                {"ldmatrix", print_load_tiles},
                {"stmatrix", print_store_tiles},
                {"movmatrix", print_move_tile},
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strcmp(name, table[i].name) == 0) {
                        table[i].print(t);
                        return true;
                }
        return false;
}
