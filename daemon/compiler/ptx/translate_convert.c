/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cvt: between all types.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

typedef struct Conversion {
        PtxType to, from;
        const char *rounding; /* to a floating-point number: "rn"; or NULL */
        const char *integer;  /* to an integer: "rni"; or NULL */
        bool flushes, saturates;
} Conversion;

static const char *c_type(PtxType type) {
        static const char *const names[PTX_N_TYPES] = {
                [PTX_B8] = "uint8_t",   [PTX_B16] = "uint16_t", [PTX_B32] = "uint32_t",
                [PTX_B64] = "uint64_t", [PTX_U8] = "uint8_t",   [PTX_U16] = "uint16_t",
                [PTX_U32] = "uint32_t", [PTX_U64] = "uint64_t", [PTX_S8] = "int8_t",
                [PTX_S16] = "int16_t",  [PTX_S32] = "int32_t",  [PTX_S64] = "int64_t",
        };

        return names[type];
}

static bool is_integer(PtxType type) {
        return c_type(type) && type >= PTX_U8;
}

static bool is_single(PtxType type) {
        return type == PTX_F16 || type == PTX_BF16 || type == PTX_F32 || type == PTX_F64;
}

/* As a double, which has each of these exactly. */
static void print_number(Translator *t, const Conversion *c, const PtxOperand *operand) {
        fprintf(t->out, "ptx_%s(%s", ptx_type_name(c->from),
                c->flushes && c->from == PTX_F32 ? "ptx_ftz_f32(" : "(");
        translator_value(t, operand, c->from);
        fputs("))", t->out);
}

static const char *integral_function(const char *rounding) {
        static const char *const names[][2] = {
                {"rni", "rint("}, {"rzi", "trunc("}, {"rmi", "floor("}, {"rpi", "ceil("}};

        for (size_t i = 0; rounding && i < ARRAY_SIZE(names); i++)
                if (strcmp(rounding, names[i][0]) == 0)
                        return names[i][1];
        return "(";
}

/* Of rounding, to a type of which the CPU driver rounds values itself. */
static const char *direction_of(const Conversion *c) {
        static const char *const names[][2] = {
                {"rz", "PTX_TO_ZERO"}, {"rm", "PTX_DOWN"}, {"rp", "PTX_UP"}};

        for (size_t i = 0; c->rounding && i < ARRAY_SIZE(names); i++)
                if (strcmp(c->rounding, names[i][0]) == 0)
                        return names[i][1];
        return "PTX_NEAREST";
}

static void integer_to_integer(Translator *t, const Conversion *c) {
        if (c->rounding || c->integer || c->flushes)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 0);
        if (c->saturates)
                fprintf(t->out, "ptx_clamp_%s((%s)", ptx_type_name(c->to), c_type(c->from));
        else
                fprintf(t->out, "(%s)((%s)", c_type(c->to), c_type(c->from));
        translator_value(t, translator_operand(t, 1), c->from);
        fputs(");", t->out);
}

static void integer_to_float(Translator *t, const Conversion *c) {
        char sign = ptx_type_is_signed(c->from) ? 's' : 'u';
        const char *type = ptx_type_name(c->to);
        bool is_half = ptx_type_size(c->to) == 2;

        if (!c->rounding || c->integer)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), ptx_type_size(c->to));
        if (c->saturates && c->to == PTX_BF16)
                translator_refuse(t, "%s", "");
        fprintf(t->out, c->saturates ? "ptx_sat_%s(" : "(", type);
        if (is_half)
                fprintf(t->out, "ptx_make_%s(ptx_%c64_half((%s)", type, sign, c_type(c->from));
        else
                fprintf(t->out, "ptx_of_%s(ptx_%c64_%s_%s((%s)", type, sign, type,
                        c->rounding ? c->rounding : "rn", c_type(c->from));
        translator_value(t, translator_operand(t, 1), c->from);
        if (is_half)
                fprintf(t->out, "), %s));", direction_of(c));
        else
                fputs(")));", t->out);
}

/* NaN: see convert.h. */
static void float_to_integer(Translator *t, const Conversion *c) {
        bool is_wide = c->from == PTX_F64 || ptx_type_size(c->to) == 8;

        if (!c->integer || c->rounding)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 0);
        fprintf(t->out, "ptx_to_%s(%s", ptx_type_name(c->to), integral_function(c->integer));
        print_number(t, c, translator_operand(t, 1));
        fprintf(t->out, "), %s%u);", is_wide ? "1ull << " : "0 * ", 8 * ptx_type_size(c->to) - 1);
}

static void float_to_float(Translator *t, const Conversion *c) {
        const char *type = ptx_type_name(c->to);
        bool is_half = ptx_type_size(c->to) == 2, narrows = c->to == PTX_F32 && c->from == PTX_F64;
        bool flushes = c->flushes && c->to == PTX_F32, relu = translator_take(t, "relu");

        if (((c->from == c->to)
                     ? c->rounding != NULL
                     : (ptx_type_size(c->to) < ptx_type_size(c->from) && !c->rounding)) ||
            (c->saturates && c->to == PTX_BF16))
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), ptx_type_size(c->to));
        fprintf(t->out, "%s%s%s(", flushes ? "ptx_ftz_f32(" : "(", c->saturates ? "ptx_sat_" : "",
                c->saturates ? type : "");
        if (is_half)
                fprintf(t->out, "ptx_make_%s(", type);
        else
                fprintf(t->out, "ptx_of_%s(", type);
        if (narrows)
                fprintf(t->out, "ptx_f64_f32_%s", c->rounding ? c->rounding : "rn");
        fprintf(t->out, "(%s%s", relu ? "ptx_relu" : "", integral_function(c->integer));
        print_number(t, c, translator_operand(t, 1));
        fprintf(t->out, "))%s%s)));", is_half ? ", " : "", is_half ? direction_of(c) : "");
}

/* cvt.rn.f16x2.f32 d, a, b: a becomes the upper half. */
static void pair_of_floats(Translator *t, Conversion *c) {
        const char *half = c->to == PTX_F16X2 ? "f16" : "bf16", *mode = direction_of(c);
        bool relu = translator_take(t, "relu");

        if (c->from != PTX_F32 || c->saturates || c->flushes || !c->rounding)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 4);
        for (size_t i = 1; i <= 2; i++) {
                fprintf(t->out, "%s(uint32_t)ptx_make_%s(%s(", i == 2 ? " | " : "", half,
                        relu ? "ptx_relu" : "");
                print_number(t, c, translator_operand(t, i));
                fprintf(t->out, "), %s)%s", mode, i == 1 ? " << 16" : "");
        }
        fputs(";", t->out);
}

static void print_tf32(Translator *t) {
        const char *rounding = translator_take_one(t, "rna rn rz");
        char mode[4] = "";
        bool relu = translator_take(t, "relu"), bounds = translator_take(t, "satfinite");

        snprintf(mode, sizeof(mode), "%s", rounding ? rounding : "");
        if (!*mode || translator_take_type(t) != PTX_F32)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, "ptx_cvt_tf32_%s(%s", mode, relu ? "ptx_relu_f32(" : "(");
        translator_value(t, translator_operand(t, 1), PTX_F32);
        fprintf(t->out, "), %u);", bounds);
}

/* ---- 8 bits -------------------------------------------------------------------------- */

/* cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b: a becomes the upper byte; from f16x2 only a. */
static void print_to_bytes(Translator *t, const char *kind) {
        bool is_right = translator_take(t, "rn") && translator_take(t, "satfinite");
        bool relu = translator_take(t, "relu");
        PtxType type = translator_take_type(t);

        if (!is_right || (type != PTX_F32 && type != PTX_F16X2)) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), 2);
        fprintf(t->out, "ptx_to_%sx2_%s(", kind, type == PTX_F32 ? "f32" : "f16");
        translator_value(t, translator_operand(t, 1), type);
        if (type == PTX_F32) {
                fputs(", ", t->out);
                translator_value(t, translator_operand(t, 2), type);
        }
        fprintf(t->out, ", %u);", relu);
}

/* cvt.rn{.relu}.f16x2.e4m3x2: every byte has an f16. */
static void print_from_bytes(Translator *t, const char *kind) {
        bool relu = translator_take(t, "relu");

        if (!translator_take(t, "rn") || translator_take_type(t) != PTX_F16X2) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, "%sptx_from_%sx2(", relu ? "ptx_relu_f16x2(" : "(", kind);
        translator_value(t, translator_operand(t, 1), PTX_B16);
        fputs("));", t->out);
}

/* Which comes first in the opcode is the result. */
static bool print_bytes(Translator *t) {
        static const char *const kinds[] = {"e4m3", "e5m2"};

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                char word[8];
                bool is_source;

                snprintf(word, sizeof(word), "%sx2", kinds[i]);
                is_source = ptx_token_is(t->parts[t->n_parts - 1], word);
                if (!translator_take(t, word))
                        continue;
                if (is_source)
                        print_from_bytes(t, kinds[i]);
                else
                        print_to_bytes(t, kinds[i]);
                return true;
        }
        return false;
}

/* cvt.pack.sat.u8.s32.b32 d, a, b, c: a behind b, and behind both what c has; 16 bits have no c. */
static void print_pack(Translator *t) {
        bool is_right = translator_take(t, "sat");
        PtxType to = translator_take_type(t), from = translator_take_type(t);
        bool has_third = translator_take_type(t) == PTX_B32;
        unsigned bits = 8 * ptx_type_size(to);

        if (!is_right || from != PTX_S32 || (bits != 8 && bits != 16) || !is_integer(to) ||
            has_third != (bits == 8) || t->in->n_operands != 3u + has_third) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), 4);
        for (size_t i = 1; i <= 2; i++) {
                fprintf(t->out, "(uint32_t)(uint%u_t)ptx_clamp_%s((int32_t)", bits,
                        ptx_type_name(to));
                translator_value(t, translator_operand(t, i), PTX_U32);
                fprintf(t->out, i == 1 ? ") << %u | " : ")", bits);
        }
        if (has_third) {
                fputs(" | (uint32_t)", t->out);
                translator_value(t, translator_operand(t, 3), PTX_U32);
                fputs(" << 16", t->out);
        }
        fputs(";", t->out);
}

static const char *constant(const char *word) {
        static const char *const words[] = {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};

        for (size_t i = 0; word && i < ARRAY_SIZE(words); i++)
                if (strcmp(word, words[i]) == 0)
                        return words[i];
        return NULL;
}

static void print_conversion(Translator *t) {
        Conversion c = {};

        t->takes_wider = true;
        c.rounding = constant(translator_take_one(t, "rn rz rm rp"));
        c.integer = constant(translator_take_one(t, "rni rzi rmi rpi"));
        c.flushes = translator_take(t, "ftz");
        c.saturates = translator_take(t, "sat");
        c.to = translator_take_type(t);
        c.from = translator_take_type(t);
        if (c.to == PTX_F16X2 || c.to == PTX_BF16X2)
                pair_of_floats(t, &c);
        else if (is_integer(c.to) && is_integer(c.from))
                integer_to_integer(t, &c);
        else if (is_single(c.to) && is_integer(c.from))
                integer_to_float(t, &c);
        else if (is_integer(c.to) && is_single(c.from))
                float_to_integer(t, &c);
        else if (is_single(c.to) && is_single(c.from))
                float_to_float(t, &c);
        else
                translator_refuse(t, "%s", "");
}

bool translate_convert(Translator *t, const char *name) {
        if (strcmp(name, "cvt") != 0)
                return false;

        if (translator_take(t, "tf32"))
                print_tf32(t);
        else if (translator_take(t, "pack"))
                print_pack(t);
        else if (!print_bytes(t))
                print_conversion(t);
        return true;
}
