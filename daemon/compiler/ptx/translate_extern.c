/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions that are no PTX: those of the CUDA runtime, and the mathematical functions of
 * NVIDIA's libdevice by their names there (__nv_sin and __nv_sinf), which the host's library has.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

/* A letter for the result and for each argument: v none, i and l integers, f and d numbers, p pointers. */
typedef struct Extern {
        const char *name;
        const char *function; /* in C */
        const char *letters;
} Extern;

static const Extern runtime[] = {
        {"vprintf", "ptx_vprintf", "ill"},
        {"__assertfail", "ptx_assertfail", "vllil"},
        {"malloc", "malloc", "pl"},
        {"free", "free", "vp"},
};

/* Of double; with an f behind both names, of float. */
static const Extern library[] = {
        {"acos", "acos", "dd"},
        {"acosh", "acosh", "dd"},
        {"asin", "asin", "dd"},
        {"asinh", "asinh", "dd"},
        {"atan", "atan", "dd"},
        {"atan2", "atan2", "ddd"},
        {"atanh", "atanh", "dd"},
        {"cbrt", "cbrt", "dd"},
        {"ceil", "ceil", "dd"},
        {"copysign", "copysign", "ddd"},
        {"cos", "cos", "dd"},
        {"cosh", "cosh", "dd"},
        {"cospi", "ptx_cospi", "dd"},
        {"cyl_bessel_i0", "ptx_cyl_bessel_i0", "dd"},
        {"cyl_bessel_i1", "ptx_cyl_bessel_i1", "dd"},
        {"erf", "erf", "dd"},
        {"erfc", "erfc", "dd"},
        {"erfcinv", "ptx_erfcinv", "dd"},
        {"erfcx", "ptx_erfcx", "dd"},
        {"erfinv", "ptx_erfinv", "dd"},
        {"exp", "exp", "dd"},
        {"exp10", "exp10", "dd"},
        {"exp2", "exp2", "dd"},
        {"expm1", "expm1", "dd"},
        {"fabs", "fabs", "dd"},
        {"fdim", "fdim", "ddd"},
        {"floor", "floor", "dd"},
        {"fma", "fma", "dddd"},
        {"fmax", "fmax", "ddd"},
        {"fmin", "fmin", "ddd"},
        {"fmod", "fmod", "ddd"},
        {"frexp", "frexp", "ddp"},
        {"hypot", "hypot", "ddd"},
        {"ilogb", "ilogb", "id"},
        {"j0", "j0", "dd"},
        {"j1", "j1", "dd"},
        {"jn", "jn", "did"},
        {"ldexp", "ldexp", "ddi"},
        {"lgamma", "lgamma", "dd"},
        {"llrint", "llrint", "ld"},
        {"llround", "llround", "ld"},
        {"log", "log", "dd"},
        {"log10", "log10", "dd"},
        {"log1p", "log1p", "dd"},
        {"log2", "log2", "dd"},
        {"logb", "logb", "dd"},
        {"modf", "modf", "ddp"},
        {"nearbyint", "nearbyint", "dd"},
        {"nextafter", "nextafter", "ddd"},
        {"norm3d", "ptx_norm3d", "dddd"},
        {"norm4d", "ptx_norm4d", "ddddd"},
        {"normcdf", "ptx_normcdf", "dd"},
        {"normcdfinv", "ptx_normcdfinv", "dd"},
        {"pow", "pow", "ddd"},
        {"powi", "ptx_powi", "ddi"},
        {"rcbrt", "ptx_rcbrt", "dd"},
        {"remainder", "remainder", "ddd"},
        {"remquo", "remquo", "dddp"},
        {"rhypot", "ptx_rhypot", "ddd"},
        {"rint", "rint", "dd"},
        {"rnorm3d", "ptx_rnorm3d", "dddd"},
        {"rnorm4d", "ptx_rnorm4d", "ddddd"},
        {"round", "round", "dd"},
        {"rsqrt", "ptx_rsqrt", "dd"},
        {"scalbn", "scalbn", "ddi"},
        {"sin", "sin", "dd"},
        {"sincos", "sincos", "vdpp"},
        {"sincospi", "ptx_sincospi", "vdpp"},
        {"sinh", "sinh", "dd"},
        {"sinpi", "ptx_sinpi", "dd"},
        {"sqrt", "sqrt", "dd"},
        {"tan", "tan", "dd"},
        {"tanh", "tanh", "dd"},
        {"tgamma", "tgamma", "dd"},
        {"trunc", "trunc", "dd"},
        {"y0", "y0", "dd"},
        {"y1", "y1", "dd"},
        {"yn", "yn", "did"},
};

static PtxType type_of(char letter) {
        switch (letter) {
                case 'i':
                        return PTX_U32;
                case 'f':
                        return PTX_F32;
                case 'd':
                        return PTX_F64;
                default:
                        return PTX_U64;
        }
}

static void print_argument(Translator *t, const PtxOperand *operand, char letter) {
        PtxType type = type_of(letter);

        fprintf(t->out, "%s(",
                letter == 'p'   ? "(void *)"
                : letter == 'f' ? "ptx_f32"
                : letter == 'd' ? "ptx_f64"
                                : "");
        if (translator_is_param(t, operand))
                fprintf(t->out, "ptx_ld_u%u((uint64_t)v%u)", 8 * ptx_type_size(type),
                        operand->index);
        else
                translator_value(t, operand, type);
        fputs(")", t->out);
}

static void print_result(Translator *t, const PtxOperand *operand, char letter) {
        PtxType type = type_of(letter);

        if (translator_is_param(t, operand)) {
                fprintf(t->out, "ptx_st_u%u((uint64_t)v%u, x);", 8 * ptx_type_size(type),
                        operand->index);
        } else {
                translator_begin(t, operand, ptx_type_size(type));
                fputs("x;", t->out);
        }
}

/* "{ uint64_t x = ptx_of_f64(sin(ptx_f64(...))); r3 = x; }"; with @suffix, of floats. */
static void print_extern(Translator *t, const Extern *function, const char *suffix,
                         const PtxOperand *returns, const PtxOperand *params) {
        size_t n = strlen(function->letters) - 1;
        char letters[8] = "";

        for (size_t i = 0; i <= n; i++)
                letters[i] = *suffix && function->letters[i] == 'd' ? 'f' : function->letters[i];
        if ((params ? params->n_elements : 0) < n || (returns && returns->n_elements > 1)) {
                translator_refuse(t, "it has too few arguments");
                return;
        }
        fprintf(t->out, "{ %s%s(", *letters == 'v' ? "" : "uint64_t x = ",
                *letters == 'f'   ? "ptx_of_f32("
                : *letters == 'd' ? "ptx_of_f64("
                : *letters == 'p' ? "(uint64_t)("
                                  : "(");
        fprintf(t->out, "%s%s(", function->function, suffix);
        for (size_t i = 0; i < n; i++) {
                fputs(i > 0 ? ", " : "", t->out);
                print_argument(t, &params->elements[i], letters[i + 1]);
        }
        fputs("))); ", t->out);
        if (*letters != 'v' && returns && returns->n_elements == 1)
                print_result(t, &returns->elements[0], *letters);
        fputs(" }", t->out);
}

static const Extern *find_in_library(PtxToken name, const char **ret_suffix) {
        static const char prefix[] = "__nv_";
        const size_t n_prefix = sizeof(prefix) - 1;

        if (name.n <= n_prefix || memcmp(name.s, prefix, n_prefix) != 0)
                return NULL;

        name = (PtxToken){name.s + n_prefix, name.n - n_prefix};
        for (size_t i = 0; i < ARRAY_SIZE(library); i++) {
                size_t n = strlen(library[i].name);
                bool is_float = name.n == n + 1 && name.s[n] == 'f';

                if ((name.n == n || is_float) && memcmp(name.s, library[i].name, n) == 0) {
                        *ret_suffix = is_float ? "f" : "";
                        return &library[i];
                }
        }
        return NULL;
}

bool translate_extern(Translator *t, PtxToken name, const PtxOperand *returns,
                      const PtxOperand *params) {
        const char *suffix = "";
        const Extern *function;

        for (size_t i = 0; i < ARRAY_SIZE(runtime); i++)
                if (ptx_token_is(name, runtime[i].name)) {
                        t->prints |= i == 0;
                        print_extern(t, &runtime[i], "", returns, params);
                        return true;
                }

        function = find_in_library(name, &suffix);
        if (!function)
                return false;
        t->uses_library = true;
        print_extern(t, function, suffix, returns, params);
        return true;
}
