/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Video instructions on the two or four parts of a register. Those on one part, masks and
 * selections of parts are refused: compilers do not write them.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

#define COMPARISONS "eq ne lt le gt ge"

/* The name in the ISA without "v" and the number of parts. Return: whether it has both. */
static bool take_name(const char *name, char *ret_operation, size_t size, unsigned *ret_n) {
        size_t n = strlen(name);

        if (*name != 'v' || n < 3 || n - 2 >= size || (name[n - 1] != '2' && name[n - 1] != '4'))
                return false;
        snprintf(ret_operation, size, "%.*s", (int)(n - 2), name + 1);
        *ret_n = (unsigned)(name[n - 1] - '0');
        return translator_has("add sub absdiff min max avrg set", ret_operation);
}

static bool is_right(PtxType type) {
        return type == PTX_U32 || type == PTX_S32;
}

/* vadd4.D.A.B{.sat,.add} d, a, b, c; vset4.A.B.COMPARISON{.add} */
bool translate_video(Translator *t, const char *name) {
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
            (saturates && adds) || t->in->n_operands != 4 ||
            (strcmp(operation, "avrg") == 0 && (a != PTX_U32 || b != PTX_U32))) {
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
