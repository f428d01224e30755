/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that compute one result of some values: a table of them.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

#define INTEGERS "u16 s16 u32 s32 u64 s64"
#define FLOATS   "f32 f64 f16 f16x2 bf16 bf16x2"

enum {
        ROUNDS = 1 << 0, /* may have .rn and its like; the function has it in its name */
        FLUSHES = 1 << 1,
        SATURATES = 1 << 2,
        APPROXIMATE = 1 << 3, /* has .approx or .full */
        CLAMPS = 1 << 4,      /* may have .relu, where the type is f16 or the like */
};

/*
 * The letters are of the result and the operands: t: the type, w: twice as wide, i: 32 bits,
 * p: a predicate. Words of the opcode come into the function's name in the order of the table.
 */
typedef struct Row {
        const char *name;
        const char *words; /* that the opcode must have */
        const char *types;
        const char *letters;
        unsigned flags;
} Row;

static const Row rows[] = {
        {"add", "sat", "s32", "ttt", 0},
        {"sub", "sat", "s32", "ttt", 0},
        {"add", "", INTEGERS " u16x2 s16x2", "ttt", 0},
        {"sub", "", INTEGERS, "ttt", 0},
        {"add", "", FLOATS, "ttt", ROUNDS | FLUSHES | SATURATES},
        {"sub", "", FLOATS, "ttt", ROUNDS | FLUSHES | SATURATES},
        {"mul", "", FLOATS, "ttt", ROUNDS | FLUSHES | SATURATES},
        {"fma", "", FLOATS, "tttt", ROUNDS | FLUSHES | SATURATES | CLAMPS},
        {"mad", "", "f32 f64", "tttt", ROUNDS | FLUSHES | SATURATES},
        {"mul", "lo", INTEGERS, "ttt", 0},
        {"mul", "hi", INTEGERS, "ttt", 0},
        {"mul", "wide", "u16 s16 u32 s32", "wtt", 0},
        {"mad", "hi sat", "s32", "tttt", 0},
        {"mad", "lo", INTEGERS, "tttt", 0},
        {"mad", "hi", INTEGERS, "tttt", 0},
        {"mad", "wide", "u16 s16 u32 s32", "wttw", 0},
        {"mul24", "lo", "u32 s32", "ttt", 0},
        {"mul24", "hi", "u32 s32", "ttt", 0},
        {"mad24", "lo", "u32 s32", "tttt", 0},
        {"mad24", "hi", "u32 s32", "tttt", 0},
        {"sad", "", INTEGERS, "tttt", 0},
        {"div", "", INTEGERS, "ttt", 0},
        {"rem", "", INTEGERS, "ttt", 0},
        {"div", "full", "f32", "ttt", FLUSHES | APPROXIMATE},
        {"div", "approx", "f32", "ttt", FLUSHES | APPROXIMATE},
        {"div", "", "f32 f64", "ttt", ROUNDS | FLUSHES},
        {"rcp", "approx", "f32 f64", "tt", FLUSHES | APPROXIMATE},
        {"rcp", "", "f32 f64", "tt", ROUNDS | FLUSHES},
        {"sqrt", "approx", "f32", "tt", FLUSHES | APPROXIMATE},
        {"sqrt", "", "f32 f64", "tt", ROUNDS | FLUSHES},
        {"rsqrt", "approx", "f32 f64", "tt", FLUSHES | APPROXIMATE},
        {"sin", "approx", "f32", "tt", FLUSHES | APPROXIMATE},
        {"cos", "approx", "f32", "tt", FLUSHES | APPROXIMATE},
        {"lg2", "approx", "f32", "tt", FLUSHES | APPROXIMATE},
        {"ex2", "approx", "f32 f16 f16x2 bf16 bf16x2", "tt", FLUSHES | APPROXIMATE},
        {"tanh", "approx", "f32 f16 f16x2 bf16 bf16x2", "tt", APPROXIMATE},
        {"abs", "", "s16 s32 s64 " FLOATS, "tt", FLUSHES},
        {"neg", "", "s16 s32 s64 " FLOATS, "tt", FLUSHES},
        {"min", "NaN", FLOATS, "ttt", FLUSHES},
        {"max", "NaN", FLOATS, "ttt", FLUSHES},
        {"min", "relu", "s32 s16x2", "ttt", 0},
        {"max", "relu", "s32 s16x2", "ttt", 0},
        {"min", "", INTEGERS " u16x2 s16x2 " FLOATS, "ttt", FLUSHES},
        {"max", "", INTEGERS " u16x2 s16x2 " FLOATS, "ttt", FLUSHES},
        {"copysign", "", "f32 f64", "ttt", 0},
        {"testp", "finite", "f32 f64", "pt", 0},
        {"testp", "infinite", "f32 f64", "pt", 0},
        {"testp", "number", "f32 f64", "pt", 0},
        {"testp", "notanumber", "f32 f64", "pt", 0},
        {"testp", "normal", "f32 f64", "pt", 0},
        {"testp", "subnormal", "f32 f64", "pt", 0},
        {"popc", "", "b32 b64", "it", 0},
        {"clz", "", "b32 b64", "it", 0},
        {"brev", "", "b32 b64", "tt", 0},
        {"bfind", "shiftamt", "u32 s32 u64 s64", "it", 0},
        {"bfind", "", "u32 s32 u64 s64", "it", 0},
        {"bfe", "", "u32 s32 u64 s64", "ttii", 0},
        {"bfi", "", "b32 b64", "tttii", 0},
        {"and", "", "pred b16 b32 b64", "ttt", 0},
        {"or", "", "pred b16 b32 b64", "ttt", 0},
        {"xor", "", "pred b16 b32 b64", "ttt", 0},
        {"not", "", "pred b16 b32 b64", "tt", 0},
        {"cnot", "", "b16 b32 b64", "tt", 0},
        {"shl", "", "b16 b32 b64", "tti", 0},
        {"shr", "", "b16 b32 b64 " INTEGERS, "tti", 0},
        {"szext", "clamp", "u32 s32", "tti", 0},
        {"szext", "wrap", "u32 s32", "tti", 0},
        {"bmsk", "clamp", "b32", "ttt", 0},
        {"bmsk", "wrap", "b32", "ttt", 0},
        {"shf", "l clamp", "b32", "tttt", 0},
        {"shf", "r clamp", "b32", "tttt", 0},
        {"shf", "l wrap", "b32", "tttt", 0},
        {"shf", "r wrap", "b32", "tttt", 0},
        {"lop3", "", "b32", "ttttt", 0},
        {"prmt", "f4e", "b32", "tttt", 0},
        {"prmt", "b4e", "b32", "tttt", 0},
        {"prmt", "rc8", "b32", "tttt", 0},
        {"prmt", "ecl", "b32", "tttt", 0},
        {"prmt", "ecr", "b32", "tttt", 0},
        {"prmt", "rc16", "b32", "tttt", 0},
        {"prmt", "", "b32", "tttt", 0},
};

static bool has_word(const char *words, const char *word, size_t n) {
        for (const char *s = words; *s; s += strspn(s, " ")) {
                size_t n_here = strcspn(s, " ");

                if (n_here == n && memcmp(s, word, n) == 0)
                        return true;
                s += n_here;
        }
        return false;
}

static bool opcode_has(const Translator *t, const char *word, size_t n) {
        for (size_t i = 1; i < t->n_parts; i++)
                if (t->parts[i].n == n && memcmp(t->parts[i].s, word, n) == 0)
                        return true;
        return false;
}

static PtxType type_of(const Translator *t) {
        for (size_t i = 1; i < t->n_parts; i++)
                if (ptx_type_find(t->parts[i]) != PTX_NONE)
                        return ptx_type_find(t->parts[i]);
        return PTX_NONE;
}

static bool row_fits(const Translator *t, const Row *row, const char *name, PtxType type) {
        const char *type_name = ptx_type_name(type);

        if (strcmp(row->name, name) != 0 || !has_word(row->types, type_name, strlen(type_name)))
                return false;
        for (const char *s = row->words; *s; s += strspn(s, " ")) {
                size_t n = strcspn(s, " ");

                if (!opcode_has(t, s, n))
                        return false;
                s += n;
        }
        return true;
}

static const Row *find_row(const Translator *t, const char *name, PtxType type) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (row_fits(t, &rows[i], name, type))
                        return &rows[i];
        return NULL;
}

static PtxType type_of_letter(char letter, PtxType type) {
        switch (letter) {
                case 't':
                        return type;
                case 'w':
                        return ptx_type_size(type) == 2 ? PTX_U32 : PTX_U64;
                case 'p':
                        return PTX_PRED;
                default:
                        return PTX_U32;
        }
}

static const char *rounding_of(Translator *t, PtxType type) {
        const char *rounding = translator_take_one(t, "rn rz rm rp");

        if (rounding && strcmp(rounding, "rn") != 0 && type != PTX_F32 && type != PTX_F64)
                translator_refuse(t, "this rounding is for f32 and f64 only");
        return rounding ? rounding : "rn";
}

static void print_name(Translator *t, const Row *row, const char *name, PtxType type) {
        const char *fixed = strcmp(name, "mad") == 0 && row->flags & ROUNDS ? "fma" : name;
        const char *words = row->words, *type_name = ptx_type_name(type);

        if (strcmp(words, "sat") == 0)
                fprintf(t->out, "ptx_sat_%s_%s(", fixed, type_name);
        else if (strcmp(words, "hi sat") == 0)
                fprintf(t->out, "ptx_sat_mad_hi_%s(", type_name);
        else if (row->flags & ROUNDS)
                fprintf(t->out, "ptx_%s_%s_%s(", fixed, rounding_of(t, type), type_name);
        else if (strcmp(words, "approx") == 0 && strcmp(name, "div") == 0)
                fputs("ptx_div_approx_f32(", t->out);
        else if (row->flags & APPROXIMATE)
                fprintf(t->out, strstr("div rcp sqrt", fixed) ? "ptx_%s_rn_%s(" : "ptx_%s_%s(",
                        fixed, type_name);
        else if (strchr(words, ' '))
                fprintf(t->out, "ptx_%s_%c_%s_%s(", fixed, *words, words + 2, type_name);
        else
                fprintf(t->out, "ptx_%s%s%s_%s(", fixed, *words ? "_" : "", words, type_name);
}

static void print_operands(Translator *t, const Row *row, PtxType type, const char *flush) {
        size_t n = strlen(row->letters) - 1;
        bool three = row->flags & ROUNDS ||
                     (row->flags & APPROXIMATE && strstr("div rcp sqrt", row->name) &&
                      strcmp(row->words, "approx") != 0);

        three |= row->flags & APPROXIMATE && strstr("rcp sqrt", row->name);
        for (size_t i = 1; i <= n; i++) {
                PtxType operand = type_of_letter(row->letters[i], type);

                fprintf(t->out, "%s%s", i > 1 ? ", " : "", operand == type ? flush : "");
                translator_value(t, translator_operand(t, i), operand);
                fputs(operand == type && *flush ? ")" : "", t->out);
        }
        for (size_t i = n; three && i < 3; i++)
                fputs(", 0", t->out);
}

/* Of f16x2 too; the other types are never flushed. */
static const char *flush_of(Translator *t, const Row *row, PtxType type) {
        if (!(row->flags & FLUSHES) || !translator_take(t, "ftz"))
                return "";
        if (type == PTX_F32)
                return "ptx_ftz_f32(";
        if (type == PTX_F16)
                return "ptx_ftz_f16(";
        if (type == PTX_F16X2)
                return "ptx_ftz_f16x2(";
        if (type != PTX_F64 && type != PTX_BF16 && type != PTX_BF16X2)
                translator_refuse(t, "%s", "");
        return "";
}

static void print_row(Translator *t, const Row *row, const char *name, PtxType type) {
        PtxType result = type_of_letter(row->letters[0], type);
        const char *flush = flush_of(t, row, type);
        bool saturates = row->flags & SATURATES && translator_take(t, "sat");
        bool clamps = row->flags & CLAMPS && translator_take(t, "relu");

        for (const char *s = row->words; *s; s += strspn(s, " ")) {
                char word[16];
                size_t n = strcspn(s, " ");

                snprintf(word, sizeof(word), "%.*s", (int)n, s);
                (void)translator_take(t, word);
                s += n;
        }
        if (clamps && (type == PTX_F32 || type == PTX_F64))
                translator_refuse(t, "%s", "");
        if (saturates && (type == PTX_F64 || type == PTX_BF16 || type == PTX_BF16X2))
                translator_refuse(t, "%s", "");
        if (t->in->n_operands != strlen(row->letters))
                translator_refuse(t, "it has %zu operands", t->in->n_operands);

        translator_begin(t, translator_operand(t, 0), ptx_type_size(result));
        if (saturates || clamps)
                fprintf(t->out, "ptx_%s_%s(", saturates ? "sat" : "relu", ptx_type_name(type));
        fputs(flush, t->out);
        print_name(t, row, name, type);
        print_operands(t, row, type, flush);
        fprintf(t->out, ")%s%s;", *flush ? ")" : "", saturates || clamps ? ")" : "");
}

/* ---- carries --------------------------------------------------------------------------- */

static void print_carry(Translator *t, const char *name, PtxType type, bool sets) {
        unsigned bits = 8 * ptx_type_size(type);
        bool is_mad = strncmp(name, "mad", 3) == 0, adds = name[0] != 's';
        bool reads = name[strlen(name) - 1] == 'c';
        const char *half = is_mad ? translator_take_one(t, "lo hi") : NULL;

        if (bits < 32 || ptx_type_is_float(type) || (is_mad && !half))
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), bits / 8);
        fprintf(t->out, "ptx_%s_%u(", adds ? "addc" : "subc", bits);
        if (is_mad)
                fprintf(t->out, "ptx_mul_%s_%s(", half ? half : "lo", ptx_type_name(type));
        translator_value(t, translator_operand(t, 1), type);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, 2), type);
        if (is_mad) {
                fputs("), ", t->out);
                translator_value(t, translator_operand(t, 3), type);
        }
        fprintf(t->out, ", %s, %s);", reads ? "cc" : adds ? "0" : "1", sets ? "&cc" : "&ignored");
}

static bool translate_carry(Translator *t, const char *name) {
        static const char *const names[] = {"add", "addc", "sub", "subc", "mad", "madc"};
        bool sets = opcode_has(t, "cc", 2);

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(name, names[i]) == 0 && (sets || i % 2)) {
                        (void)translator_take(t, "cc");
                        print_carry(t, name, translator_take_type(t), sets);
                        return true;
                }
        return false;
}

/* ---- products of bytes ------------------------------------------------------------------- */

static bool translate_dot(Translator *t, const char *name) {
        const char *half = "";
        PtxType a, b;

        if (strcmp(name, "dp4a") != 0 && strcmp(name, "dp2a") != 0)
                return false;

        if (name[2] == '2')
                half = translator_take(t, "lo") ? "_lo" : translator_take(t, "hi") ? "_hi" : "?";
        a = translator_take_type(t);
        b = translator_take_type(t);
        if ((a != PTX_U32 && a != PTX_S32) || (b != PTX_U32 && b != PTX_S32) || *half == '?')
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, "ptx_%s%s_%s_%s(", name, half, ptx_type_name(a), ptx_type_name(b));
        for (size_t i = 1; i < 4; i++) {
                fputs(i > 1 ? ", " : "", t->out);
                translator_value(t, translator_operand(t, i), PTX_U32);
        }
        fputs(");", t->out);
        return true;
}

bool translate_arithmetic(Translator *t, const char *name) {
        PtxType type = type_of(t);
        const Row *row;

        if (translate_carry(t, name) || translate_dot(t, name))
                return true;
        row = find_row(t, name, type);
        if (!row)
                return false;

        (void)translator_take_type(t);
        print_row(t, row, name, type);
        return true;
}
