/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PTX declares: entries with the kinds of their parameters, variables, printf.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ptx.h"

#define HEAD ".version 6.0\n.target sm_60, debug\n.address_size 64\n"

static Signature *scan(const char *text) {
        Signature *signature = NULL;

        assert_int_equal(signature_new(&signature), 0);
        assert_int_equal(ptx_scan(text, strlen(text), signature), 0);
        return signature;
}

static void entries_tell_the_kinds_of_parameters(void **state) {
        _cleanup_(signature_freep) Signature *s = scan(
                HEAD ".file 1 \"a.cu\"\n"
                     ".visible .entry many(\n"
                     "  .param .u64 .ptr .global .align 4 many_param_0,\n"
                     "  .param .u64 a, .param .s64 b, .param .b64 c, .param .f64 d, // }\n"
                     "  .param .u32 e, .param .f32 f, .param .u16 g, .param .s8 h, .param .b32 i,\n"
                     "  .param .align 8 .b8 j[16], .param .align 1 .b8 k[1]\n"
                     ")\n.maxntid 256, 1, 1\n{ .reg .b32 %r<2>; { ret; } }\n"
                     ".entry none()\n{ ret; }\n.weak .entry bare { ret; }\n");

        assert_int_equal(s->n_kernels, 3);
        assert_string_equal(s->kernels[0].symbol, "many");
        assert_string_equal(s->kernels[0].kinds, "pwwwdifscbbb");
        assert_string_equal(s->kernels[1].symbol, "none");
        assert_string_equal(s->kernels[1].kinds, "");
        assert_string_equal(s->kernels[2].symbol, "bare");
        assert_string_equal(s->kernels[2].kinds, "");
        assert_int_equal(s->n_variables, 0);
        assert_false(s->has_printf);
}

/* As NVRTC writes kernels of templates that others launch. */
static void an_entry_that_is_declared_counts_where_it_is_defined(void **state) {
        _cleanup_(signature_freep) Signature *s =
                scan(HEAD ".weak .entry child\n(\n.param .u64 p\n)\n.maxntid 64, 1, 1\n;\n"
                          ".visible .entry parent(.param .u64 p) { ret; }\n"
                          ".weak .entry child(.param .u64 p) .pragma \"nounroll\"; { ret; }\n"
                          ".entry last;");

        assert_int_equal(s->n_kernels, 2);
        assert_string_equal(s->kernels[0].symbol, "parent");
        assert_string_equal(s->kernels[1].symbol, "child");
}

static void variables_are_told_and_strings_are_not(void **state) {
        _cleanup_(signature_freep) Signature *s =
                scan(HEAD ".global .align 4 .u32 counter;\n"
                          ".visible .const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
                          ".global .v4 .f32 a, b = {1.0, 2.0, 3.0, 4.0}, c[2];\n"
                          ".global .attribute(.managed) .u32 shared_with_host;\n"
                          ".extern .global .u32 elsewhere;\n"
                          ".global .align 1 .b8 $str[4] = {104, 105, 10};\n"
                          ".global .align 1 .b8 _$_str[4] = {104, 105, 10};\n"
                          ".global .align 1 .b8 __unnamed_1[4] = {104};\n"
                          ".shared .align 4 .b8 tile[64];\n"
                          "/* .global .u32 comment; */ // .global .u32 line;\n");
        static const char *const wanted[] = {"counter", "table", "a", "b", "c", "shared_with_host"};

        assert_int_equal(s->n_variables, ARRAY_SIZE(wanted));
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
                assert_string_equal(s->variables[i], wanted[i]);
}

static void a_call_of_printf_shows_in_its_declaration(void **state) {
        _cleanup_(signature_freep) Signature *s = scan(
                HEAD ".extern .func  (.param .b32 func_retval0) vprintf\n(\n.param .b64 a,\n"
                     ".param .b64 b\n)\n;\n.func (.param .b32 r) own(.param .b32 x)\n{ ret; }\n"
                     ".visible .entry f() { call vprintf; }\n");

        assert_true(s->has_printf);
        assert_int_equal(s->n_kernels, 1);
}

static void names_inside_of_functions_are_passed_over(void **state) {
        _cleanup_(signature_freep) Signature *s = scan(
                HEAD ".func helper() { .global .u32 x; .entry inner() }\n"
                     ".section .debug_str { .b8 1, 2 }\n.visible .entry f() { bar.sync 0; }\n");

        assert_int_equal(s->n_kernels, 1);
        assert_int_equal(s->n_variables, 0);
}

static void text_cut_anywhere_does_no_harm(void **state) {
        static const char text[] = HEAD
                ".global .u32 v[2] = {1, 2};\n.extern .func (.param .b32 r) vprintf (.param .b64 "
                "a);\n.visible .entry f(.param .u64 .ptr .align 8 p, .param .align 4 .b8 s[4])\n"
                "{ /* c */ mov.u32 %r1, \"x\"; }\n";

        for (size_t n = 0; n <= strlen(text); n++) {
                _cleanup_(signature_freep) Signature *s = NULL;
                _cleanup_(freep) char *part = malloc(n + !n);

                memcpy(part, text, n);
                assert_int_equal(signature_new(&s), 0);
                assert_int_equal(ptx_scan(part, n, s), 0);
        }
}

static void mangled_names_get_the_users_names(void **state) {
        _cleanup_(freep) char *kernels = NULL, *variables = NULL;
        _cleanup_(signature_freep) Signature *s = NULL;

        assert_int_equal(signature_new(&s), 0);
        assert_int_equal(signature_add_kernel(s, "_Z1fIfEvPT_iPKS0_", 17, "wiw"), 0);
        assert_int_equal(signature_add_kernel(s, "_ZN2ns3addEyPKdl", 16, "www"), 0);
        assert_int_equal(signature_add_kernel(s, "_Z1oi", 5, "i"), 0);
        assert_int_equal(signature_add_kernel(s, "_Z1of", 5, "f"), 0);
        assert_int_equal(signature_add_kernel(s, "plain", 5, "ww"), 0);
        assert_int_equal(signature_add_kernel(s, "broken\tname", 11, "w"), 0);
        assert_int_equal(signature_pack(s, &kernels, &variables), 0);
        assert_string_equal(kernels, "pip\t_Z1fIfEvPT_iPKS0_\tf<float>\t\n"
                                     "lpl\t_ZN2ns3addEyPKdl\tns::add\t\n"
                                     "i\t_Z1oi\t_Z1oi\t\n"
                                     "f\t_Z1of\t_Z1of\t\n"
                                     "ww\tplain\tplain\t\n");
        assert_string_equal(variables, "");
}

/* As nvcc writes them. */
static void constants_of_the_toolkit_are_no_variables(void **state) {
        static const char text[] =
                ".weak .global .align 1 .b8 _ZN4cuda3std3__417integral_constantIbLb0EE5valueE = "
                "1;\n"
                ".global .align 1 .b8 "
                "_ZN32_INTERNAL_00000000_9_kernel_cu_f18cooperative_groups4__v17details7_unusedE[1]"
                ";\n"
                ".global .align 1 .b8 _ZN20_INTERNAL_0_8_k_cu_k4cuda3std3__45__cpo4swapE[1];\n"
                ".global .align 1 .b8 _ZN20_INTERNAL_0_8_k_cu_k6thrust3seqE[1];\n"
                ".global .align 4 .u32 _ZN4cuda3__420memory_order_relaxedE;\n"
                ".weak .global .align 4 .u32 "
                "_ZN18cooperative_groups4__v110grid_group12thread_scopeE = 1;\n"
                ".global .align 4 .b8 __cudart_i2opi_f[24] = {65, 144, 67, 60};\n"
                ".global .align 1 .b8 _$_str1[2] = {37}, $str[4] = {110, 62, 48};\n"
                ".global .align 1 .b8 $str$2[4] = {37, 115, 10};\n"
                ".global .align 1 .b8 __unnamed_1[21] = {118, 111};\n"
                ".global .align 1 .b8 __PRETTY_FUNCTION___$__Z1fPi[2] = {102};\n";
        _cleanup_(signature_freep) Signature *s = NULL;

        assert_int_equal(signature_new(&s), 0);
        assert_int_equal(ptx_scan(text, strlen(text), s), 0);
        assert_int_equal(s->n_variables, 0);
}

/* A user's that is not seen to be one is shared by all who have the same module. */
static void names_like_the_toolkits_are_users_variables(void **state) {
        static const char *const declarations[] = {
                ".global .align 4 .u32 __ticket;",
                ".global .align 4 .u32 __ticket = 5;",
                ".global .align 4 .u32 __cudart_;",
                ".global .align 1 .b8 $str[4];",
                ".const .align 4 .f32 __weights[4];",
                ".global .align 4 .u32 _ZN4cuda7counterE;",
                ".global .align 4 .u32 _ZN4cuda7counterE = 5;",
                ".global .align 4 .u32 _ZN4cuda7counterE[1];",
                ".global .align 4 .u32 _ZN4cuda8__ticketE;",
                ".global .align 1 .b8 _ZN3cub7counterE[1][1];",
                ".global .align 1 .b8 _ZN3cub7counterE[];",
                ".global .align 1 .b8 _ZN6thrust7counterE[2];",
                ".global .align 4 .u32 _ZN4cuda3std7counterE;",
                ".global .align 4 .u32 counter;",
                ".global .align 4 .u32 _ZN2ns7counterE;",
                ".global .u32 _ZN38_INTERNAL_00000000_9_kernel_cu_counter2ns6hiddenE;",
                ".global .u32 __nv_static_31__0_8_k_cu_counter;",
                ".global .u32 _ZN4;",
                ".global .u32 _ZN99x;",
                ".global .u32 _Z;",
        };

        for (size_t i = 0; i < ARRAY_SIZE(declarations); i++) {
                _cleanup_(signature_freep) Signature *s = NULL;

                assert_int_equal(signature_new(&s), 0);
                assert_int_equal(ptx_scan(declarations[i], strlen(declarations[i]), s), 0);
                if (s->n_variables != 1)
                        fail_msg("not seen: %s", declarations[i]);
        }
}

static void user_names_lose_type_and_parameters(void **state) {
        static const struct {
                const char *demangled, *name;
        } cases[] = {
                {"f(int)", "f"},
                {"void ns::f<std::pair<int, float>, 4>(float*)", "ns::f<std::pair<int, float>, 4>"},
                {"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
                {"void f<(anonymous namespace)::S>(int)", "f<(anonymous namespace)::S>"},
                {"f(void (*)(int))", "f"},
                {"data", "data"},
                {"", ""},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(freep) char *name = signature_user_name(cases[i].demangled);

                assert_string_equal(name, cases[i].name);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(entries_tell_the_kinds_of_parameters),
                cmocka_unit_test(an_entry_that_is_declared_counts_where_it_is_defined),
                cmocka_unit_test(variables_are_told_and_strings_are_not),
                cmocka_unit_test(a_call_of_printf_shows_in_its_declaration),
                cmocka_unit_test(names_inside_of_functions_are_passed_over),
                cmocka_unit_test(text_cut_anywhere_does_no_harm),
                cmocka_unit_test(mangled_names_get_the_users_names),
                cmocka_unit_test(constants_of_the_toolkit_are_no_variables),
                cmocka_unit_test(names_like_the_toolkits_are_users_variables),
                cmocka_unit_test(user_names_lose_type_and_parameters),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
