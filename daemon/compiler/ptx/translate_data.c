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

/* "uint8_t c = a < b;", and what it is combined with as d. */
static void print_comparison(Translator *t, const char *comparison, PtxType type, bool flushes) {
        for (size_t i = 1; i <= 2; i++) {
                fputs(i == 1 ? "{ uint8_t c = ptx_" : ", ", t->out);
                if (i == 1)
                        fprintf(t->out, "%s_%s(", comparison, ptx_type_name(type));
                fputs(flushes ? "ptx_ftz_f32(" : "", t->out);
                translator_value(t, translator_operand(t, i), type);
                fputs(flushes ? ")" : "", t->out);
        }
        fputs(")", t->out);
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

        if (type == PTX_F16X2 || type == PTX_BF16X2 || ptx_type_size(type) < 2)
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

static void print_compare(Translator *t) {
        char comparison[8] = "";
        const char *word = translator_take_one(t, COMPARISONS), *combination = combination_of(t);
        bool flushes = translator_take(t, "ftz");
        PtxType type = translator_take_type(t);

        snprintf(comparison, sizeof(comparison), "%s", word ? unsigned_name(word) : "");
        if (!word || !is_comparable(type, comparison) || (flushes && type != PTX_F32)) {
                translator_refuse(t, "%s", "");
                return;
        }
        print_comparison(t, comparison, type, flushes);
        (void)print_third(t, combination);
        fputs("; ", t->out);
        if (translator_operand(t, 0)->kind == PTX_PAIR) {
                translator_begin(t, &translator_operand(t, 0)->elements[0], 1);
                fprintf(t->out, combination ? "(c %s d); " : "c; ", combination);
                translator_begin(t, &translator_operand(t, 0)->elements[1], 1);
                fprintf(t->out, combination ? "(!c %s d); }" : "!c; }", combination);
                return;
        }
        translator_begin(t, translator_operand(t, 0), 1);
        fprintf(t->out, combination ? "(c %s d); }" : "c; }", combination);
}

static void print_set(Translator *t) {
        char comparison[8] = "";
        const char *word = translator_take_one(t, COMPARISONS), *combination = combination_of(t);
        bool flushes = translator_take(t, "ftz");
        PtxType to = translator_take_type(t), type = translator_take_type(t);

        snprintf(comparison, sizeof(comparison), "%s", word ? unsigned_name(word) : "");
        if (!word || !is_comparable(type, comparison) || (flushes && type != PTX_F32) ||
            (to != PTX_U32 && to != PTX_S32 && to != PTX_F32)) {
                translator_refuse(t, "%s", "");
                return;
        }
        print_comparison(t, comparison, type, flushes);
        (void)print_third(t, combination);
        fputs("; ", t->out);
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, combination ? "(c %s d) ? %s : 0; }" : "%sc ? %s : 0; }",
                combination ? combination : "", to == PTX_F32 ? "0x3f800000u" : "0xffffffffu");
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
