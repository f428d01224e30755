/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Video instructions: on the two or four parts of a register, and on one part or all of it.
 *
 * On several parts, masks and selections of them are refused: compilers do not write them.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

#define COMPARISONS "eq ne lt le gt ge"

static bool is_right(PtxType type) {
        return type == PTX_U32 || type == PTX_S32;
}

/* ---- on several parts ------------------------------------------------------------- */

/* The name in the ISA without "v" and the number of parts. Return: whether it has both. */
static bool take_name(const char *name, char *ret_operation, size_t size, unsigned *ret_n) {
        size_t n = strlen(name);

        if (*name != 'v' || n < 3 || n - 2 >= size || (name[n - 1] != '2' && name[n - 1] != '4'))
                return false;
        snprintf(ret_operation, size, "%.*s", (int)(n - 2), name + 1);
        *ret_n = (unsigned)(name[n - 1] - '0');
        return translator_has("add sub absdiff min max avrg set", ret_operation);
}

/* vadd4.D.A.B{.sat,.add} d, a, b, c; vset4.A.B.COMPARISON{.add} */
static bool translate_parts(Translator *t, const char *name) {
        char operation[8] = "", comparison[4] = "";
        bool is_set, saturates, adds;
        PtxType a, b, d = PTX_U32;
        unsigned n;

        if (!take_name(name, operation, sizeof(operation), &n))
                return false;

        is_set = strcmp(operation, "set") == 0;
        saturates = translator_take(t, "sat");
        adds = translator_take(t, "add");
        if (is_set)
                snprintf(comparison, sizeof(comparison), "%s",
                         translator_take_one(t, COMPARISONS) ?: "");
        else
                d = translator_take_type(t);
        a = translator_take_type(t);
        b = translator_take_type(t);
        if (!is_right(a) || !is_right(b) || !is_right(d) || (is_set && !*comparison) ||
            (saturates && adds) || t->in->n_operands != 4) {
                translator_refuse(t, "%s", "");
                return true;
        }
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, "PTX_VIDEO(%s%s%s, %u, %u, %u, %u, %u, %u", operation, is_set ? "_" : "",
                comparison, n, a == PTX_S32, b == PTX_S32, d == PTX_S32, saturates, adds);
        for (size_t i = 1; i <= 3; i++) {
                fputs(", ", t->out);
                translator_value(t, translator_operand(t, i), PTX_U32);
        }
        fputs(");", t->out);
        return true;
}

/* ---- on one part ------------------------------------------------------------------ */

typedef struct Scalar {
        char operation[16]; /* as the functions of ptx/video.h are named */
        PtxType d, a, b;
        bool saturates;
        const char *second; /* "add", "min" or "max" with c; "first": the result as it is */
} Scalar;

static PtxOperand whole_of(const PtxOperand *operand) {
        PtxOperand whole = *operand;

        whole.part_at = whole.part_bits = 0;
        return whole;
}

/* "ptx_part(r1, 2, 8, 0)": part 2 of 8 bits, unsigned. */
static void print_part(Translator *t, const PtxOperand *operand, PtxType type) {
        unsigned bits = operand->part_bits ?: 32;
        PtxOperand whole = whole_of(operand);

        fputs("ptx_part(", t->out);
        translator_value(t, &whole, PTX_U32);
        fprintf(t->out, ", %u, %u, %u)", operand->part_at / bits, bits, type == PTX_S32);
}

/* Return: whether the opcode has all that its operation needs. */
static bool take_scalar(Translator *t, const char *name, Scalar *ret) {
        bool is_set = strcmp(name, "vset") == 0, shifts = translator_has("vshl vshr", name);
        const char *mode = is_set   ? translator_take_one(t, COMPARISONS)
                           : shifts ? translator_take_one(t, "clamp wrap")
                                    : "";

        snprintf(ret->operation, sizeof(ret->operation), "%s%s%s", name + 1,
                 *(mode ?: "") ? "_" : "", mode ?: "");
        ret->d = is_set ? PTX_U32 : translator_take_type(t);
        ret->a = translator_take_type(t);
        ret->b = translator_take_type(t);
        ret->saturates = !is_set && translator_take(t, "sat");
        ret->second = translator_take_one(t, "add min max") ?: "first";
        return mode && is_right(ret->d) && is_right(ret->a) && is_right(ret->b) &&
               (!shifts || ret->b == PTX_U32);
}

/* vadd.D.A.B{.sat}{.add} d{.h0}, a{.b0}, b{.b0}{, c} */
static void print_scalar(Translator *t, const char *name) {
        const PtxOperand *d = translator_operand(t, 0);
        bool merges = d->part_bits != 0, combines;
        PtxOperand to = whole_of(d);
        Scalar scalar;

        if (!take_scalar(t, name, &scalar)) {
                translator_refuse(t, "%s", "");
                return;
        }
        combines = strcmp(scalar.second, "first") != 0;
        if ((merges && combines) || t->in->n_operands != (merges || combines ? 4 : 3)) {
                translator_refuse(t,
                                  "it takes a third source for .add, .min or .max, or for a part "
                                  "of the result, and else none");
                return;
        }
        translator_begin(t, &to, 4);
        fprintf(t->out, "PTX_VIDEO_SCALAR(%s, %s, %u, %u, %u, %u, ", scalar.operation,
                scalar.second, scalar.d == PTX_S32, scalar.saturates, d->part_at,
                d->part_bits ?: 32);
        print_part(t, translator_operand(t, 1), scalar.a);
        fputs(", ", t->out);
        print_part(t, translator_operand(t, 2), scalar.b);
        fputs(", ", t->out);
        if (merges || combines)
                translator_value(t, translator_operand(t, 3), PTX_U32);
        else
                fputs("0", t->out);
        fputs(");", t->out);
}

/* The sign of the result is that of the sources, whatever D is. */
static bool mad_is_signed(const PtxOperand sources[3], PtxType a, PtxType b) {
        return a == PTX_S32 || b == PTX_S32 || sources[0].minus != sources[1].minus ||
               sources[2].minus;
}

/* vmad.D.A.B{.po}{.sat}{.shr7} d, {-}a{.b0}, {-}b{.b0}, {-}c */
static void print_mad(Translator *t) {
        PtxType d = translator_take_type(t), a = translator_take_type(t),
                b = translator_take_type(t);
        bool adds_one = translator_take(t, "po"), saturates = translator_take(t, "sat");
        unsigned shift = translator_take(t, "shr7") ? 7 : translator_take(t, "shr15") ? 15 : 0;
        PtxOperand sources[3];
        bool negates, negates_c, is_signed;

        for (size_t i = 0; i < 3; i++)
                sources[i] = *translator_operand(t, i + 1);
        negates = sources[0].minus != sources[1].minus;
        negates_c = sources[2].minus;
        is_signed = mad_is_signed(sources, a, b);
        if (!is_right(d) || !is_right(a) || !is_right(b) || t->in->n_operands != 4 ||
            (negates_c && (sources[0].minus || sources[1].minus)) ||
            (adds_one && (sources[0].minus || sources[1].minus || negates_c))) {
                translator_refuse(t, "%s", "");
                return;
        }
        for (size_t i = 0; i < 3; i++)
                sources[i].minus = false;
        translator_begin(t, translator_operand(t, 0), 4);
        fputs("ptx_video_mad(", t->out);
        print_part(t, &sources[0], a);
        fputs(", ", t->out);
        print_part(t, &sources[1], b);
        fputs(", ", t->out);
        translator_value(t, &sources[2], PTX_U32);
        fprintf(t->out, ", %u, %u, %u, %u, %u, %u);", is_signed, saturates, negates, negates_c,
                adds_one, shift);
}

bool translate_video(Translator *t, const char *name) {
        if (strcmp(name, "vmad") == 0)
                print_mad(t);
        else if (translator_has("vadd vsub vabsdiff vmin vmax vshl vshr vset", name))
                print_scalar(t, name);
        else
                return translate_parts(t, name);
        return true;
}
