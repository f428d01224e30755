/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches from texture objects: a handle in a register, and coordinates.
 *
 * gpuq makes textures over linear memory, which is fetched by index, and over pitched memory, with
 * coordinates in floating point. What needs a CUDA array, or another kind of texture, is refused.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

/* A GPU does not run it either, for lack of what it needs. */
static void refuse_everywhere(Translator *t, const char *why) {
        translator_fail(t, t->in->line, "gpuq cannot run %.*s: %s", (int)MIN(t->in->opcode.n, 100),
                        t->in->opcode.s, why);
}

/* The handle: a register of 64 bits. */
static void print_handle(Translator *t, const PtxOperand *operand) {
        if (operand->kind != PTX_REGISTER) {
                translator_refuse(t, "the CPU driver has texture objects only, whose handle is an "
                                     "argument of the kernel");
                return;
        }
        translator_value(t, operand, PTX_U64);
}

/* Coordinate @i: of a vector, or a register that is the only one. */
static void print_coordinate(Translator *t, const PtxOperand *coordinates, size_t i, PtxType type) {
        fputs(", ", t->out);
        translator_value(
                t, coordinates->kind == PTX_VECTOR ? &coordinates->elements[i] : coordinates, type);
}

/* In the function's name, or NULL with the instruction refused. */
static const char *take_geometry(Translator *t, size_t *ret_n, PtxType *ret_type) {
        bool is_1d = translator_take(t, "1d"), is_2d = !is_1d && translator_take(t, "2d");

        *ret_n = is_2d ? 2 : 1;
        if (!is_1d && !is_2d) {
                refuse_everywhere(t, "it has textures of one dimension, and of rows with a pitch");
                return NULL;
        }
        if (!translator_take(t, "v4") || translator_operand(t, 0)->kind != PTX_VECTOR ||
            translator_operand(t, 0)->n_elements != 4) {
                translator_refuse(t, "the result must be .v4");
                return NULL;
        }
        if (!translator_has("s32 u32 f32", ptx_type_name(translator_take_type(t)))) {
                translator_refuse(t, "the result must be s32, u32 or f32");
                return NULL;
        }
        *ret_type = translator_take_type(t);
        if (is_1d && *ret_type == PTX_S32)
                return "1d_s32";
        if (is_2d && *ret_type == PTX_F32)
                return "2d_f32";
        if (is_1d)
                refuse_everywhere(t, "tex1D() needs a CUDA array, which there is not; use "
                                     "tex1Dfetch(), or tex2D() of a texture with one row");
        else
                translator_refuse(t, "the coordinates of a two-dimensional texture are f32");
        return NULL;
}

/* tex.GEOMETRY.v4.TYPE.TYPE {d, ...}, [handle, {x, ...}] */
static void print_fetch(Translator *t) {
        const PtxOperand *from = translator_operand(t, 1), *to = translator_operand(t, 0);
        size_t n = 0;
        PtxType type = PTX_NONE;
        const char *function = take_geometry(t, &n, &type);

        if (!function)
                return;
        if (t->in->n_operands != 2 || from->kind != PTX_ADDRESS || from->n_elements != 2 ||
            (from->elements[1].kind == PTX_VECTOR ? from->elements[1].n_elements : 1) != n) {
                translator_refuse(t, "it takes a handle and coordinates, and no level, sampler, "
                                     "offset or depth");
                return;
        }
        t->uses_textures = true;
        fprintf(t->out, "{ PtxTexel texel = ptx_tex_%s(", function);
        print_handle(t, &from->elements[0]);
        for (size_t i = 0; i < n; i++)
                print_coordinate(t, &from->elements[1], i, type);
        fputs("); ", t->out);
        for (size_t i = 0; i < 4; i++) {
                translator_begin(t, &to->elements[i], 4);
                fprintf(t->out, "texel.bits[%zu]; ", i);
        }
        fputs("}", t->out);
}

/* txq.width.b32 d, [handle] */
static void print_query(Translator *t) {
        const PtxOperand *from = translator_operand(t, 1);
        const char *what = translator_take_one(t, "width height");

        if (!what || translator_take_type(t) != PTX_B32 || from->kind != PTX_ADDRESS ||
            from->n_elements != 1) {
                translator_refuse(t, "%s", "");
                return;
        }
        t->uses_textures = true;
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, "ptx_txq_%s(", what);
        print_handle(t, &from->elements[0]);
        fputs(");", t->out);
}

bool translate_texture(Translator *t, const char *name) {
        if (translator_has("suld sust sured suq", name))
                refuse_everywhere(t, "it has no surfaces, which CUDA makes of its arrays only; "
                                     "write to a buffer");
        else if (strcmp(name, "tex") == 0)
                print_fetch(t);
        else if (strcmp(name, "txq") == 0)
                print_query(t);
        else
                return false;
        return true;
}
