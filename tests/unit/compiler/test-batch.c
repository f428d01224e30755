/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels' twins: which there are, and that they read their arguments from the
 * table. Where a linker is on this machine, what is written is assembled too.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/batch_rewrite.h"
#include "compiler/batch_module.h"
#include "compiler/ptx.h"

#define HEAD "//\n.version 6.0\n.target sm_60\n.address_size 64\n"
/* A kernel "k" with an integer and a pointer. */
#define KERNEL(body)                                                                               \
        ".visible .entry k(.param .u32 k_param_0, .param .u64 k_param_1)\n{\n"                     \
        "\t.reg .pred %p<2>;\n\t.reg .b16 %rs<2>;\n\t.reg .b32 %r<9>;\n"                           \
        "\t.reg .b64 %rd<9>;\n" body "\tret;\n}\n"

/* The text with twins; NULL if there are none. */
static char *rewrite(const char *text, int *ret_n_twins) {
        char *written = NULL;
        size_t n_written = 0;

        *ret_n_twins = batch_rewrite(text, strlen(text), &written, &n_written);
        assert_true(*ret_n_twins >= 0);
        if (written)
                assert_int_equal(strlen(written), n_written);
        return written;
}

/* What rewrite_all() wrote, for the test that assembles it. */
static struct {
        char *text;
        unsigned sm;
} written_texts[16];
static size_t n_written_texts;

/* Also that nothing of the text is lost. */
static char *rewrite_all(const char *text, unsigned sm, int n_wanted) {
        int n_twins;
        char *written = rewrite(text, &n_twins);

        assert_int_equal(n_twins, n_wanted);
        assert_non_null(written);
        assert_true(n_written_texts < ARRAY_SIZE(written_texts));
        written_texts[n_written_texts].sm = sm;
        written_texts[n_written_texts++].text = strdup(written);
        return written;
}

/* What stands in the way of a twin of the entry "k". */
static BatchObstacle obstacle(const char *text) {
        _cleanup_(batch_module_freep) BatchModule *module = NULL;

        assert_int_equal(batch_module_new(text, strlen(text), &module), 0);
        for (size_t i = 0; i < module->n_functions; i++)
                if (ptx_token_is(module->functions[i].name, "k"))
                        return module->functions[i].obstacle;
        fail_msg("no entry k in: %s", text);
        return BATCH_UNKNOWN;
}

static size_t count(const char *text, const char *what) {
        size_t n = 0;

        for (; (text = strstr(text, what)); text += strlen(what))
                n++;
        return n;
}

static void arguments_come_from_the_row(void **state) {
        _cleanup_(freep) char *text = rewrite_all(
                HEAD KERNEL("\tld.param.u32 \t%r1, [k_param_0];\n"
                            "\t@%p1 ld.param.u64 %rd1, [ k_param_1 ];\n"
                            "L1:\tmov.u32 %r2, %ctaid.z;\n"
                            "\tcvt.u64.u32 %rd2, %nctaid.z;\n\tmov.u32 %r3, %ctaid.x;\n"),
                75, 1);
        const char *twin = strstr(text, ".visible .entry k" BATCH_SUFFIX "(");

        assert_non_null(twin);
        assert_int_equal(count(text, "[k_param_0]"), 1);
        assert_non_null(strstr(twin, ".param .align 16 .b8 k" BATCH_SUFFIX "_table[4096]\n)"));
        assert_non_null(strstr(twin, "mul.wide.u32 %gpuq_batch_row, %gpuq_batch_ctaid_z, 16;"));
        assert_non_null(strstr(twin, "add.s64 %gpuq_batch_param1, %gpuq_batch_row, 8;"));
        assert_non_null(strstr(twin, "ld.param.u32 \t%r1, [%gpuq_batch_param0];"));
        assert_non_null(strstr(twin, "@%p1 ld.param.u64 %rd1, [ %gpuq_batch_param1 ];"));
        assert_non_null(strstr(twin, "L1:\tmov.u32 %r2, %gpuq_batch_ctaid_z;"));
        assert_non_null(strstr(twin, "cvt.u64.u32 %rd2, %gpuq_batch_nctaid_z;"));
        assert_non_null(strstr(twin, "mov.u32 %r3, %ctaid.x;"));
        assert_null(strstr(twin, "k_param"));
        assert_int_equal(count(twin, "%ctaid.z"), 1);
}

static void parameters_lie_as_ptx_lays_them(void **state) {
        static const size_t offsets[] = {0, 2, 8, 16, 24, 28, 31, 32, 48};
        _cleanup_(batch_module_freep) BatchModule *module = NULL;
        static const char text[] = HEAD
                ".entry k(.param .u8 a, .param .b16 b, .param .u64 .ptr .global .align 256 c,\n"
                ".param .align 8 .b8 d[5], .param .f32 e, .param .u8 f[3], .param .s8 g,\n"
                ".param .align 16 .b8 h[16], .param .f64 i)\n{ ret; }\n";
        const BatchFunction *k;

        assert_int_equal(batch_module_new(text, strlen(text), &module), 0);
        k = module->functions;
        assert_int_equal(k->obstacle, BATCH_NONE);
        assert_int_equal(k->n_parameters, ARRAY_SIZE(offsets));
        for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
                assert_int_equal(k->parameters[i].offset, offsets[i]);
        assert_int_equal(k->n_bytes, 56);
}

/* As NVRTC writes a struct by value, with its address taken, vectors and parts. */
static void structs_by_value_are_read_in_any_way(void **state) {
        _cleanup_(freep) char *text = rewrite_all(
                HEAD
                ".visible .entry _Z1k3Mat4Vec4Pf(\n\t.param .align 8 .b8 _Z1k3Mat_param_0[104],\n"
                "\t.param .align 16 .b8 _Z1k3Mat_param_1[16],\n\t.param .u64 _Z1k3Mat_param_2\n)\n"
                ".maxntid 256, 1, 1\n.minnctapersm 2\n{\n"
                "\t.reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b16 %rs<9>;\n"
                "\t.pragma \"nounroll\";\n"
                "\tmov.b64 \t%rd1, _Z1k3Mat_param_0;\n\tmov.u64 \t%rd2, %rd1;\n"
                "\tadd.s64 %rd3, %rd2, 8;\n\tld.param.f32 %f1, [%rd3+4];\n"
                "\tld.param.v4.f32 \t{%f2, %f3, %f4, %f5}, [_Z1k3Mat_param_1];\n"
                "\tld.param.v2.u16 {%rs1, %rs2}, [_Z1k3Mat_param_0+44];\n"
                "\tld.param.u64 %rd4, [_Z1k3Mat_param_2];\n"
                "\tld.param.f32 %f6, [_Z1k3Mat_param_0 + 96];\n"
                "\tcvta.to.global.u64 %rd5, %rd4;\n\tadd.f32 %f7, %f1, %f5;\n"
                "\tst.global.v2.f32 [%rd5], {%f7, %f6};\n\tret;\n}\n",
                90, 1);
        const char *twin = strstr(text, "$gpuq_batch(");

        assert_non_null(strstr(twin, ")\n.maxntid 256, 1, 1\n.minnctapersm 2\n{"));
        assert_non_null(strstr(twin, "mov.b64 \t%rd1, %gpuq_batch_param0;"));
        assert_non_null(strstr(twin, "{%f2, %f3, %f4, %f5}, [%gpuq_batch_param1];"));
        assert_non_null(strstr(twin, "{%rs1, %rs2}, [%gpuq_batch_param0+44];"));
        assert_non_null(strstr(twin, "%f6, [%gpuq_batch_param0 + 96];"));
        assert_non_null(strstr(twin, "%gpuq_batch_row, %gpuq_batch_ctaid_z, 144;"));
        assert_non_null(strstr(twin, "%gpuq_batch_param1, %gpuq_batch_row, 112;"));
}

/* As Numba writes: long mangled names, an environment that nobody reads, .loc lines, functions. */
static void kernels_in_numbas_style_have_twins(void **state) {
        _cleanup_(freep) char *text = rewrite_all(
                "//\n.version 8.0\n.target sm_75\n.address_size 64\n"
                ".visible .global .align 4 .u32 _ZN08NumbaEnv8__main__3addB2v1Ex;\n"
                ".common .global .align 8 .u64 _ZN08NumbaEnv8__main__4kernB2v2Ex;\n"
                ".func (.param .b32 func_retval0) _ZN8__main__3addB2v1Ef(\n"
                ".param .b64 _ZN8__main__3addB2v1Ef_param_0)\n{\n\t.reg .b32 %r<2>;\n"
                "\tmov.u32 %r1, 0;\n\tst.param.b32 [func_retval0], %r1;\n\tret;\n}\n"
                ".visible .entry _ZN8__main__4kernB2v2E5ArrayIfLi1E1C7mutable7alignedE(\n"
                "\t.param .u64 _ZN8__main__4kern_param_0,\n\t.param .f32 "
                "_ZN8__main__4kern_param_1\n"
                ")\n{\n\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<3>;\n\t.reg .f32 %f<3>;\n"
                "\t.loc 1 4 1\n\tld.param.u64 %rd1, [_ZN8__main__4kern_param_0];\n"
                "\t.loc\t1 6 1, function_name $L__info_string0, inlined_at 1 4 1\n"
                "\tld.param.f32 %f1, [_ZN8__main__4kern_param_1];\n"
                "\t{ // callseq 0, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b64 param0;\n"
                "\tst.param.b64 [param0+0], %rd1;\n\t.param .b32 retval0;\n"
                "\tcall.uni (retval0), _ZN8__main__3addB2v1Ef, (param0);\n"
                "\tld.param.b32 %r1, [retval0+0];\n\t} // callseq 0\n\tret;\n}\n"
                ".file 1 \"numba.py\"\n"
                ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90,0\n}\n",
                75, 1);

        assert_int_equal(count(text, "%f1, [%gpuq_batch_param1];"), 1);
        assert_int_equal(count(text, "_ZN08NumbaEnv8__main__4kernB2v2Ex"), 1);
}

static void each_kernel_that_can_has_its_twin_and_the_rest_stays(void **state) {
        static const char text[] = HEAD
                ".global .u32 counter;\n.shared .align 4 .b8 tile[64];\n"
                ".extern .shared .align 16 .b8 dynamic[];\n" KERNEL(
                        "\tld.param.u64 %rd1, [k_param_1];\n\tmov.u32 %r1, tile;\n"
                        "\tmov.u32 %r2, dynamic;\n") ".entry reads(.param .u64 p) {\n\t.reg .b32 "
                                                     "%r<2>;\n"
                                                     "\tld.global.u32 %r1, [counter];\n\tret;\n}\n"
                                                     ".weak .entry last(.param .u64 p) {\n\t.reg "
                                                     ".b64 %rd<2>;\n"
                                                     "\t.shared .align 4 .b8 own[16];\n\t.local "
                                                     ".align 4 .b8 depot[16];\n"
                                                     "\tld.param.u64 %rd1, [p];\n\tmov.u64 %rd1, "
                                                     "own;\n\tmov.u64 %rd1, depot;\n"
                                                     "L:\tbra L;\n}\n// the end";
        _cleanup_(freep) char *written = rewrite_all(text, 90, 2);
        _cleanup_(signature_freep) Signature *signature = NULL;

        assert_null(strstr(written, "reads" BATCH_SUFFIX));
        assert_non_null(strstr(written, "last" BATCH_SUFFIX));
        assert_string_equal(written + strlen(written) - 10, "// the end");
        assert_int_equal(signature_new(&signature), 0);
        assert_int_equal(ptx_scan(written, strlen(written), signature), 0);
        assert_int_equal(signature->n_kernels, 3 + 2);
}

static void obstacles_are_told_apart(void **state) {
        static const struct {
                const char *text;
                BatchObstacle obstacle;
        } cases[] = {
                {HEAD KERNEL(""), BATCH_NONE},
                {HEAD KERNEL("\tmov.v4.u32 {%r1, %r2, %r3, %r4}, %ctaid;\n"), BATCH_GRID},
                {HEAD KERNEL("\tmov.v4.u32 {%r1, %r2, %r3, %r4}, %nctaid;\n"), BATCH_GRID},
                {HEAD KERNEL("\tmov.u16 %rs1, %ctaid.z;\n"), BATCH_GRID},
                {HEAD KERNEL("\tmov.u64 %rd1, %gridid;\n"), BATCH_GRID},
                {HEAD
                 ".func f() { .reg .b32 %r1; mov.u32 %r1, %ctaid.z; ret; }\n" KERNEL("\tcall f;\n"),
                 BATCH_GRID},
                {HEAD KERNEL("\tmov.u32 %r1, %cluster_ctarank;\n"), BATCH_CLUSTER},
                {HEAD KERNEL("\tmov.u32 %r1, %nclusterid.x;\n"), BATCH_CLUSTER},
                {HEAD KERNEL("\tbarrier.cluster.arrive;\n"), BATCH_CLUSTER},
                {HEAD KERNEL("\tld.shared::cluster.u32 %r1, [%r2];\n"), BATCH_CLUSTER},
                {HEAD KERNEL("\tmapa.u64 %rd1, %rd2, %r1;\n"), BATCH_CLUSTER},
                {HEAD ".entry k(.param .u64 p)\n.reqnctapercluster 2, 1, 1\n{ ret; }\n",
                 BATCH_CLUSTER},
                {HEAD ".entry k(.param .u64 p)\n.explicitcluster\n{ ret; }\n", BATCH_CLUSTER},
                {HEAD KERNEL("\tmov.u32 %r1, %envreg2;\n"), BATCH_COOPERATIVE},
                {HEAD KERNEL("\tgriddepcontrol.wait;\n"), BATCH_COOPERATIVE},
                {HEAD ".global .u32 v;\n" KERNEL("\tld.global.u32 %r1, [v];\n"), BATCH_VARIABLE},
                {HEAD ".const .align 4 .b8 v[16];\n" KERNEL("\tmov.u64 %rd1, v;\n"),
                 BATCH_VARIABLE},
                {HEAD ".global .align 4 .b8 __cudart_i2opi_f[24] = {65};\n" KERNEL(
                         "\tmov.u64 %rd1, __cudart_i2opi_f;\n"),
                 BATCH_NONE},
                {HEAD ".extern .global .u32 v;\n" KERNEL("\tmov.u64 %rd1, v;\n"), BATCH_VARIABLE},
                {HEAD ".global .texref t;\n" KERNEL("\ttex.1d.v4.s32.s32 {%r1}, [t, {%r2}];\n"),
                 BATCH_VARIABLE},
                {HEAD ".tex .u32 t;\n" KERNEL("\ttex.1d.v4.s32.s32 {%r1}, [t, {%r2}];\n"),
                 BATCH_VARIABLE},
                {HEAD KERNEL("\t.global .u32 inner;\n"), BATCH_VARIABLE},
                {HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a);\n" KERNEL(
                         "\tcall.uni (r), vprintf, (a);\n"),
                 BATCH_CALL},
                {HEAD ".extern .func f();\n.func g() { call f; ret; }\n.func h() { call g; ret; "
                      "}\n" KERNEL("\tcall h;\n"),
                 BATCH_CALL},
                {HEAD ".func h();\n.func k2() { call h; ret; }\n" KERNEL(
                         "\tcall k2;\n") ".extern .func f();\n.func h() { call f; ret; }\n",
                 BATCH_CALL},
                {HEAD ".func h();\n" KERNEL("\tcall h;\n") ".func h() { call h; ret; }\n",
                 BATCH_NONE},
                {HEAD ".entry other() { ret; }\n" KERNEL("\tmov.u64 %rd1, other;\n"), BATCH_CALL},
                {HEAD KERNEL("p: .callprototype _ ();\n\tcall %rd1, (), p;\n"), BATCH_CALL},
                {HEAD ".func f() { ret; }\n.alias g, f;\n" KERNEL("\tcall g;\n"), BATCH_VARIABLE},
                {HEAD ".entry k() { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .align 4 .b8 p[2049]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .align 4 .b8 p[2048]) { ret; }\n", BATCH_NONE},
                {HEAD ".entry k(.param .b8 p[99999999999999999999]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .b8 p[18446744073709551615]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .align 64 .b8 p[128]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .align 3 .b8 p[16]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .v2 .f32 p) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .texref p) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .u32 p[2][2]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .b8 p[]) { ret; }\n", BATCH_PARAMETERS},
                {HEAD ".entry k(.param .u32) { ret; }\n", BATCH_PARAMETERS},
                {HEAD KERNEL("\tcvta.param.u64 %rd1, k_param_0;\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\tmov.b64 %rd1, k_param_0;\n\tcvta.param.u64 %rd2, %rd1;\n"),
                 BATCH_PARAMETERS},
                {HEAD KERNEL("\tmov.b64 %rd1, k_param_0+8;\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\tmov.u32 %r1, k_param_0;\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\tld.volatile.param.u32 %r1, [k_param_0];\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\tld.param.u32 %r1, [k_param_0+%r2];\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\t.reg .b32 k_param_0;\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\t.reg .b32 k_param_<3>;\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\t@k_param_0 ret;\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("k_param_0:\n"), BATCH_PARAMETERS},
                {HEAD KERNEL("\tcall f, (k_param_0);\n"), BATCH_PARAMETERS},
                {".version 6.0\n.target sm_60\n.address_size 32\n" KERNEL(""), BATCH_UNKNOWN},
                {".version 6.0\n.target sm_60\n" KERNEL(""), BATCH_UNKNOWN},
                {HEAD KERNEL("") ".section .debug_info { .b64 L; }\n", BATCH_UNKNOWN},
                {HEAD KERNEL("") "@@DWARF .byte 1\n", BATCH_UNKNOWN},
                {HEAD "#define x\n" KERNEL(""), BATCH_UNKNOWN},
                {HEAD KERNEL("#define x\n"), BATCH_UNKNOWN},
                {HEAD KERNEL("\t.section .debug_str { }\n"), BATCH_UNKNOWN},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BatchObstacle found = obstacle(cases[i].text);

                if (found != cases[i].obstacle)
                        print_message("%s\n", cases[i].text);
                assert_int_equal(found, cases[i].obstacle);
        }
}

/* What only looks like an obstacle. */
static void names_and_comments_are_no_obstacles(void **state) {
        assert_int_equal(obstacle(HEAD ".global .u32 v;\n.func cluster_of(.param .b64 cluster_p) "
                                       "{ ret; }\n" KERNEL("\t// v %ctaid /* v */\n"
                                                           "\t.pragma \"v %gridid\";\n"
                                                           "\tcall cluster_of, (%rd1);\n"
                                                           "cluster_loop:\tbra cluster_loop;\n")),
                         BATCH_NONE);
        assert_int_equal(obstacle(HEAD KERNEL("\tld.param::entry.u32 %r1, [k_param_0];\n"
                                              "\tld.param.u32 %r1, [k_param_0+-0];\n")),
                         BATCH_NONE);
}

static void a_long_chain_of_calls_is_followed_or_given_up(void **state) {
        _cleanup_(freep) char *text = NULL;
        size_t n_text;
        FILE *f = open_memstream(&text, &n_text);

        fputs(HEAD, f);
        for (int i = 0; i < 200; i++)
                fprintf(f, ".func f%d() { call f%d; ret; }\n", i, i + 1);
        fputs(".extern .func f200();\n" KERNEL("\tcall f0;\n"), f);
        assert_int_equal(fclose(f), 0);
        assert_int_not_equal(obstacle(text), BATCH_NONE);
}

static void a_text_with_our_names_or_of_another_kind_gets_none(void **state) {
        int n_twins;

        assert_null(rewrite(HEAD KERNEL("") ".entry k" BATCH_SUFFIX "(.param .u32 p) { ret; }\n",
                            &n_twins));
        assert_null(rewrite(HEAD KERNEL("\t.reg .b32 %gpuq_batch_row;\n"), &n_twins));
        assert_null(rewrite("", &n_twins));
        assert_null(rewrite("__global__ void k(int *p) {}", &n_twins));
}

static void text_cut_or_with_words_lost_does_no_harm(void **state) {
        static const char text[] = HEAD
                ".global .u32 v[2] = {1, 2};\n.extern .func (.param .b32 r) vprintf (.param .b64 "
                "a);\n.func (.param .b32 r) own(.param .b64 a) { call (r), vprintf, (a); ret; }\n"
                ".visible .entry f(.param .u64 .ptr .align 8 p, .param .align 4 .b8 s[4])\n"
                ".maxntid 1, 1, 1\n{ /* c */ .loc 1 2 3\nmov.u32 %r1, \"x\"; @%p bra L;\n"
                "ld.param.v2.u32 {%r1, %r2}, [s+0]; L: mov.b64 %rd1, p; mov.u32 %r1, %ctaid.z; "
                "call (r), own, (a); { ret; } }\n"
                ".section .debug_str { .b8 1 }\n.alias a, b;\n";
        unsigned random = 1;

        for (size_t n = 0; n <= strlen(text); n++) {
                _cleanup_(freep) char *part = malloc(n + !n), *written = NULL;
                size_t n_written;

                memcpy(part, text, n);
                assert_true(batch_rewrite(part, n, &written, &n_written) >= 0);
        }
        for (int round = 0; round < 5000; round++) {
                _cleanup_(freep) char *part = malloc(2 * sizeof(text)), *written = NULL;
                PtxTokens tokens = {text, text + strlen(text)};
                size_t n = 0, n_written;
                PtxToken token;

                while ((token = ptx_tokens_next(&tokens)).n > 0) {
                        random = random * 1103515245u + 12345u;
                        if (random >> 16 & 15) {
                                memcpy(part + n, token.s, token.n);
                                n += token.n;
                                part[n++] = " \n"[random >> 20 & 1];
                        }
                }
                part = realloc(part, n + !n);
                assert_true(batch_rewrite(part, n, &written, &n_written) >= 0);
        }
}

/* Where there is something to do so. */
static void what_was_written_assembles(void **state) {
        bool linked = n_written_texts > 0;

        for (size_t i = 0; i < n_written_texts; i++) {
                Request request = {.sm = written_texts[i].sm, .name = "twins"};
                _cleanup_(freep) char *text = written_texts[i].text;
                _cleanup_(result_freep) Result *result = NULL;

                assert_int_equal(result_new(&result), 0);
                assert_int_equal(link_image(&request, result, FORMAT_PTX, text, strlen(text)), 0);
                linked &= result->status != COMPILED_NO_COMPILER;
                if (linked)
                        assert_string_equal(result->log ? result->log : "", "");
        }
        n_written_texts = 0;
        if (!linked)
                skip();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(arguments_come_from_the_row),
                cmocka_unit_test(parameters_lie_as_ptx_lays_them),
                cmocka_unit_test(structs_by_value_are_read_in_any_way),
                cmocka_unit_test(kernels_in_numbas_style_have_twins),
                cmocka_unit_test(each_kernel_that_can_has_its_twin_and_the_rest_stays),
                cmocka_unit_test(obstacles_are_told_apart),
                cmocka_unit_test(names_and_comments_are_no_obstacles),
                cmocka_unit_test(a_long_chain_of_calls_is_followed_or_given_up),
                cmocka_unit_test(a_text_with_our_names_or_of_another_kind_gets_none),
                cmocka_unit_test(text_cut_or_with_words_lost_does_no_harm),
                cmocka_unit_test(what_was_written_assembles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
