/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves, comparisons and selections.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

#define COMPARISONS "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"

/* ---- mov ------------------------------------------------------------------------- */

/* Parts of a register, the lowest first. */
static void print_unpack(Translator *t, const PtxOperand *to, PtxType type) {
        unsigned size = to->n_elements ? ptx_type_size(type) / to->n_elements : 0;

        fputs("{ uint64_t whole = ", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs("; ", t->out);
        for (size_t i = 0; i < to->n_elements; i++) {
                translator_begin(t, &to->elements[i], size);
                fprintf(t->out, "(whole >> %zu); ", 8 * size * i);
        }
        fputs("}", t->out);
}

static void print_pack(Translator *t, const PtxOperand *from, PtxType type) {
        static const PtxType of_size[] = {[1] = PTX_B8, [2] = PTX_B16, [4] = PTX_B32};
        unsigned size = from->n_elements ? ptx_type_size(type) / from->n_elements : 0;

        if (size != 1 && size != 2 && size != 4) {
                translator_refuse(t, "a vector of this size");
                return;
        }
        translator_begin(t, translator_operand(t, 0), ptx_type_size(type));
        fputs("0", t->out);
        for (size_t i = 0; i < from->n_elements; i++) {
                fprintf(t->out, " | (uint64_t)(uint%u_t)", 8 * size);
                translator_value(t, &from->elements[i], of_size[size]);
                fprintf(t->out, " << %zu", 8 * size * i);
        }
        fputs(";", t->out);
}

static void print_mov(Translator *t) {
        PtxType type = translator_take_type(t);
        const PtxOperand *to = translator_operand(t, 0), *from = translator_operand(t, 1);

        if (type == PTX_NONE || type == PTX_B128)
                translator_refuse(t, "%s", "");
        else if (to->kind == PTX_VECTOR)
                print_unpack(t, to, type);
        else if (from->kind == PTX_VECTOR)
                print_pack(t, from, type);
        else {
                translator_begin(t, to, ptx_type_size(type));
                translator_value(t, from, type);
                fputs(";", t->out);
        }
}

/* ---- comparisons ---------------------------------------------------------------------- */

static const char *unsigned_name(const char *comparison) {
        static const char *const names[][2] = {
                {"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(comparison, names[i][0]) == 0)
                        return names[i][1];
        return comparison;
}

/* What flushes a value of this type, or "(". */
static const char *flush_of(PtxType type, bool flushes) {
        if (!flushes)
                return "(";
        return type == PTX_F32   ? "ptx_ftz_f32("
               : type == PTX_F16 ? "ptx_ftz_f16("
                                 : "ptx_ftz_f16x2(";
}

static bool is_packed(PtxType type) {
        return type == PTX_F16X2 || type == PTX_BF16X2;
}

/* "{ uint32_t a = r1, b = r2; uint8_t c = a < b;" and, of packed values, e for the upper ones. */
static void print_comparison(Translator *t, const char *comparison, PtxType type, bool flushes) {
        const char *flush = flush_of(type, flushes);
        const char *single = type == PTX_F16X2    ? "f16"
                             : type == PTX_BF16X2 ? "bf16"
                                                  : ptx_type_name(type);

        fprintf(t->out, "{ uint%u_t a = %s", 8 * ptx_type_size(type), flush);
        translator_value(t, translator_operand(t, 1), type);
        fprintf(t->out, "), b = %s", flush);
        translator_value(t, translator_operand(t, 2), type);
        if (is_packed(type))
                fprintf(t->out,
                        "); uint8_t c = ptx_%s_%s((uint16_t)a, (uint16_t)b), e = "
                        "ptx_%s_%s((uint16_t)(a >> 16), (uint16_t)(b >> 16))",
                        comparison, single, comparison, single);
        else
                fprintf(t->out, "); uint8_t c = ptx_%s_%s(a, b)", comparison, single);
}

static const char *combination_of(Translator *t) {
        if (translator_take(t, "and"))
                return "&";
        if (translator_take(t, "or"))
                return "|";
        if (translator_take(t, "xor"))
                return "^";
        return NULL;
}

static bool is_comparable(PtxType type, const char *comparison) {
        bool is_bits = type >= PTX_B16 && type <= PTX_B64;

        if (ptx_type_size(type) < 2 || type == PTX_B128)
                return false;
        if (is_bits)
                return strcmp(comparison, "eq") == 0 || strcmp(comparison, "ne") == 0;
        return ptx_type_is_float(type) || comparison[2] == '\0';
}

/* Behind the comparison: c, d = the third value. Return: whether there is one. */
static bool print_third(Translator *t, const char *combination) {
        if (!combination)
                return false;
        fputs(", d = ", t->out);
        translator_value(t, translator_operand(t, 3), PTX_PRED);
        return true;
}

typedef struct Comparison {
        char name[8];
        const char *combination; /* with the third value, or NULL */
        bool flushes;
} Comparison;

static Comparison take_comparison(Translator *t) {
        const char *word = translator_take_one(t, COMPARISONS);
        Comparison c = {};

        snprintf(c.name, sizeof(c.name), "%s", word ? unsigned_name(word) : "");
        c.combination = combination_of(t);
        c.flushes = translator_take(t, "ftz");
        return c;
}

static bool is_right(const Comparison *c, PtxType type) {
        return *c->name && is_comparable(type, c->name) &&
               (!c->flushes || type == PTX_F32 || type == PTX_F16 || type == PTX_F16X2);
}

/* "r1 = c;", or "r1 = (c & d);" */
static void print_outcome(Translator *t, const PtxOperand *to, const char *value,
                          const char *combination) {
        translator_begin(t, to, 1);
        if (combination)
                fprintf(t->out, "(%s %s d); ", value, combination);
        else
                fprintf(t->out, "%s; ", value);
}

/* The second predicate is that of the upper values, or else the opposite of the first. */
static void print_compare(Translator *t) {
        Comparison c = take_comparison(t);
        PtxType type = translator_take_type(t);
        const PtxOperand *to = translator_operand(t, 0);

        if (!is_right(&c, type) || (is_packed(type) && to->kind != PTX_PAIR)) {
                translator_refuse(t, "%s", "");
                return;
        }
        print_comparison(t, c.name, type, c.flushes);
        (void)print_third(t, c.combination);
        fputs("; ", t->out);
        if (to->kind == PTX_PAIR) {
                print_outcome(t, &to->elements[0], "c", c.combination);
                print_outcome(t, &to->elements[1], is_packed(type) ? "e" : "!c", c.combination);
        } else {
                print_outcome(t, to, "c", c.combination);
        }
        fputs("}", t->out);
}

/* What a result of this type is where the comparison is true, or NULL where there is no such set. */
static const char *true_of(PtxType to, PtxType type) {
        bool is_half = type == PTX_F16 || type == PTX_BF16;

        if (is_packed(type))
                return to == PTX_F16X2 && type == to    ? "0x3c00u"
                       : to == PTX_BF16X2 && type == to ? "0x3f80u"
                       : to == PTX_U32 || to == PTX_S32 ? "0xffffu"
                                                        : NULL;
        if (to == PTX_U32 || to == PTX_S32)
                return "0xffffffffu";
        if (to == PTX_F32)
                return "0x3f800000u";
        if ((to == PTX_U16 || to == PTX_S16) && is_half)
                return "0xffffu";
        if (to == PTX_F16 && type != PTX_BF16)
                return "0x3c00u";
        return to == PTX_BF16 && type != PTX_F16 ? "0x3f80u" : NULL;
}

static void print_set(Translator *t) {
        Comparison c = take_comparison(t);
        PtxType to = translator_take_type(t), type = translator_take_type(t);
        const char *value = true_of(to, type);

        if (!is_right(&c, type) || !value) {
                translator_refuse(t, "%s", "");
                return;
        }
        print_comparison(t, c.name, type, c.flushes);
        (void)print_third(t, c.combination);
        fputs("; ", t->out);
        translator_begin(t, translator_operand(t, 0), ptx_type_size(to));
        fprintf(t->out, "(c%s%s ? %s : 0)", c.combination ? c.combination : "",
                c.combination ? "d" : "", value);
        if (is_packed(type))
                fprintf(t->out, " | (e%s%s ? %s : 0) << 16", c.combination ? c.combination : "",
                        c.combination ? "d" : "", value);
        fputs("; }", t->out);
}

/* ---- selections -------------------------------------------------------------------------- */

static void print_selp(Translator *t) {
        PtxType type = translator_take_type(t);

        if (ptx_type_size(type) < 2) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), ptx_type_size(type));
        translator_value(t, translator_operand(t, 3), PTX_PRED);
        fputs(" ? ", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs(" : ", t->out);
        translator_value(t, translator_operand(t, 2), type);
        fputs(";", t->out);
}

static void print_slct(Translator *t) {
        bool flushes = translator_take(t, "ftz");
        PtxType type = translator_take_type(t), by = translator_take_type(t);

        if (ptx_type_size(type) < 2 || (by != PTX_S32 && by != PTX_F32)) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), ptx_type_size(type));
        fprintf(t->out, "ptx_ge_%s(%s", ptx_type_name(by), flushes ? "ptx_ftz_f32(" : "(");
        translator_value(t, translator_operand(t, 3), by);
        fputs("), 0) ? ", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs(" : ", t->out);
        translator_value(t, translator_operand(t, 2), type);
        fputs(";", t->out);
}

bool translate_data(Translator *t, const char *name) {
        if (strcmp(name, "mov") == 0)
                print_mov(t);
        else if (strcmp(name, "setp") == 0)
                print_compare(t);
        else if (strcmp(name, "set") == 0)
                print_set(t);
        else if (strcmp(name, "selp") == 0)
                print_selp(t);
        else if (strcmp(name, "slct") == 0)
                print_slct(t);
        else
                return false;
        return true;
}
