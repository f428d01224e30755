/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX with checks: which instructions get a call, what the sites say, and what is refused. What is
 * written is PTX for our own reader and, in $GPUQ_TEST_PTXAS, for NVIDIA's assembler.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/check_rewrite.h"
#include "compiler/ptx/module.h"

#define HEAD_OF(version, target) ".version " version "\n.target " target "\n.address_size 64\n"
#define HEAD                     HEAD_OF("7.0", "sm_75")
#define ENTRY                    ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
#define BEGIN                                                                                      \
        ".reg .pred %q<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b16 %h<4>;\n" \
        "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u64 %rd2, 0;\n"     \
        "mov.f32 %f1, 0f00000000;\nsetp.eq.u32 %q1, %r1, 0;\n"

static Checked rewrite(const char *text) {
        Checked checked = {};
        char *error = NULL;
        int r = check_rewrite(text, strlen(text), "kernel.cu", &checked, &error);

        if (r)
                print_message("%s\n", error ? error : "");
        free(error);
        assert_int_equal(r, 0);
        return checked;
}

static void assert_refused(const char *text, const char *wanted) {
        _cleanup_(freep) char *error = NULL;
        Checked checked;

        assert_int_equal(check_rewrite(text, strlen(text), "kernel.cu", &checked, &error),
                         CHECK_REWRITE_E_REFUSED);
        if (!strstr(error, wanted))
                print_message("%s\n", error);
        assert_non_null(strstr(error, wanted));
}

/* Our reader takes it; so does ptxas, if there is one. */
static void assert_assembles(const Checked *checked, const char *target) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL, *command = NULL;
        char path[] = "/tmp/gpuq-check-XXXXXX";
        const char *ptxas = getenv("GPUQ_TEST_PTXAS");
        int fd, status;

        if (ptx_module_read(checked->text, checked->n_text, &module, &error))
                fail_msg("%s", error);
        if (!ptxas)
                return;
        fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(backend_write_file(path, checked->text, checked->n_text), 0);
        assert_true(asprintf(&command, "%s -arch=%s -o /dev/null %s", ptxas, target, path) > 0);
        status = system(command);
        assert_int_equal(WEXITSTATUS(status), 0);
        unlink(path);
}

static size_t count(const char *text, const char *what) {
        size_t n = 0;

        for (const char *s = text; (s = strstr(s, what)); s++)
                n++;
        return n;
}

/* ---- sites ----------------------------------------------------------------------------- */

static void each_access_has_a_site_with_its_line(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(
                HEAD
                ".file 1 \"/tmp/x/kernel.cu\"\n.file 2 \"other.h\"\n" ENTRY BEGIN
                ".loc 1 7 3\nst.global.f32 [%rd1+4], %f1;\n"
                "@!%q1 ld.global.v2.u32 {%r3, %r4},\n\t[%rd1];\n"
                ".loc 2 9 1\nL: atom.global.add.u32 %r3, [%rd1], 1; red.global.add.u32 [%rd1], 1;\n"
                "ret;\n}\n");

        assert_string_equal(checked.sites,
                            "store\tkernel.cu:7\tst.global.f32 [%rd1+4], %f1\n"
                            "load\tkernel.cu:7\tld.global.v2.u32 {%r3, %r4}, [%rd1]\n"
                            "atomic operation\tother.h:9\tatom.global.add.u32 %r3, [%rd1], 1\n"
                            "atomic operation\tother.h:9\tred.global.add.u32 [%rd1], 1\n");
        assert_non_null(strstr(checked.text, "add.s64 %gpuq_check_a, %rd1, 4;\n"
                                             "\tmov.u32 %gpuq_check_n, 4;\n"
                                             "\tmov.u32 %gpuq_check_w, 2;\n"
                                             "\tmov.u32 %gpuq_check_s, 0;\n"
                                             "\tcall gpuq_check_global,"));
        assert_non_null(strstr(checked.text, "\t@!%q1 call gpuq_check_global,"));
        assert_non_null(strstr(checked.text, "L: \n\tadd.s64 %gpuq_check_a, %rd1, 0;"));
        assert_assembles(&checked, "sm_75");
}

/* A comment may stand between "@" and the predicate, and may have an "@" too. */
static void the_comparison_is_before_the_guard_of_its_instruction(void **state) {
        _cleanup_(checked_finish) Checked checked =
                rewrite(HEAD ENTRY BEGIN "@/*@*/ %q1 ld.global.u32 %r3, [%rd1];\nret;\n}\n");

        assert_non_null(strstr(checked.text, "\t@%q1 ld.global.u32 %r3, [%rd1];"));
        assert_int_equal(count(checked.text, "/*@*/"), 0);
        assert_null(strstr(checked.text, "@/*\n"));
        assert_assembles(&checked, "sm_75");
}

static void the_rest_of_the_text_stays_as_it_is(void **state) {
        static const char text[] =
                HEAD "// a comment\n.global .u32 counter = 3;\n" ENTRY BEGIN
                     "/* ld.global.u32 %r3, [%rd1]; */ add.s32 %r3, %r1, 1;\nret;\n}\n";
        _cleanup_(checked_finish) Checked checked = rewrite(text);

        assert_string_equal(checked.sites, "");
        assert_non_null(strstr(checked.text,
                               "/* ld.global.u32 %r3, [%rd1]; */ add.s32 %r3, %r1, 1;\nret;\n}\n"));
        assert_non_null(strstr(
                checked.text,
                ".address_size 64\n// a comment\n.visible .global .align 16 .b8 gpuq_check["));
        assert_assembles(&checked, "sm_75");
}

static void memory_of_the_thread_and_of_parameters_is_not_compared(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(
                HEAD
                ".const .u32 fixed[4];\n.func (.param .b32 out) f(.param .b32 x)\n{ .reg .b32 "
                "%r1;\n"
                "ld.param.u32 %r1, [x]; st.param.b32 [out], %r1; ret; }\n" ENTRY BEGIN
                ".local .align 4 .b8 own[16];\n.reg .b64 %SP;\nmov.u64 %SP, own;\n"
                "ld.local.u32 %r3, [%SP]; st.local.u32 [own+4], %r3; ld.const.u32 %r3, [fixed+4];\n"
                "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call.uni (b), f, (a); "
                "ld.param.b32 %r4, [b]; }\n"
                "prefetch.global.L2 [%rd1];\nret;\n}\n");

        assert_string_equal(checked.sites, "");
        assert_assembles(&checked, "sm_75");
}

/* ---- shared memory ------------------------------------------------------------------------ */

static void the_end_of_shared_memory_is_that_of_the_kernels_own(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(
                HEAD ".shared .align 4 .b8 one[400];\n.shared .align 4 .b8 two[800];\n"
                     ".extern .shared .align 16 .b8 dynamic[];\n"
                     ".func f()\n{ .reg .b32 %r1; ld.shared.u32 %r1, [two]; ret; }\n"
                     ".entry a() { .reg .b32 %r1; ld.shared.u32 %r1, [one+8]; ret; }\n"
                     ".entry b() { .reg .b32 %r<3>; .reg .b64 %rd1; call f; mov.u32 %r2, dynamic; "
                     "ld.shared.u32 %r1, [%r2+4];\n mov.u64 %rd1, dynamic; ld.shared.u32 %r1, "
                     "[%rd1]; ret; }\n"
                     ".entry c() { .reg .b32 %r1; .shared .align 4 .b8 three[12]; ld.shared.u32 "
                     "%r1, [three]; "
                     "ret; }\n");
        const char *a = strstr(checked.text, ".entry a()"), *b = strstr(checked.text, ".entry b()");
        const char *c = strstr(checked.text, ".entry c()");

        assert_non_null(memmem(a, (size_t)(b - a), "mov.u32 %gpuq_check_x, 400;", 27));
        assert_null(memmem(a, (size_t)(b - a), "800", 3));
        assert_null(memmem(a, (size_t)(b - a), "%dynamic_smem_size", 18));
        assert_non_null(memmem(b, (size_t)(c - b), "mov.u32 %gpuq_check_x, 800;", 27));
        assert_non_null(memmem(b, (size_t)(c - b), "%dynamic_smem_size", 18));
        assert_non_null(memmem(b, (size_t)(c - b), "cvt.u32.u64 %gpuq_check_x, %rd1;", 32));
        assert_non_null(strstr(c, "mov.u32 %gpuq_check_n, three;"));
        assert_int_equal(count(checked.text, "%total_smem_size"),
                         1); /* f may be called by others */
        assert_assembles(&checked, "sm_75");
}

static void generic_addresses_are_told_apart_when_it_runs(void **state) {
        _cleanup_(checked_finish) Checked checked =
                rewrite(HEAD ".global .u32 counter;\n.shared .u32 own;\n" ENTRY BEGIN
                             "ld.u32 %r3, [%rd1]; st.u32 [counter], %r3; atom.cas.b64 %rd3, "
                             "[%rd1], %rd2, %rd2;\n"
                             "ld.u32 %r3, [own];\nret;\n}\n");

        assert_int_equal(count(checked.text, "call gpuq_check_generic,"), 2);
        assert_int_equal(count(checked.text, "call gpuq_check_shared, (%gpuq_check_x"), 1);
        assert_non_null(strstr(checked.text, "mov.u64 %gpuq_begin, counter;"));
        assert_assembles(&checked, "sm_75");
}

/* ---- kinds of instructions ------------------------------------------------------------------ */

static void newer_instructions_are_compared_too(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(HEAD_OF(
                "7.8", "sm_80") ".shared .align 16 .b8 tile[4096];\n" ENTRY BEGIN
                                ".reg .b32 %m<9>;\n mov.u32 %r5, tile;\n"
                                "cp.async.ca.shared.global [%r5], [%rd1], 16;\n"
                                "cp.async.ca.shared.global [%r5], [%rd1], 8, %r1;\n"
                                "cp.async.cg.shared.global.L2::128B [%r5], [%rd1], 16, 8;\n"
                                "cp.async.ca.shared.global [%r5], [%rd1], 16, %q1;\n"
                                "cp.async.commit_group;\ncp.async.wait_group 0;\n"
                                "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%m1, %m2}, [%r5];\n"
                                "mbarrier.init.shared.b64 [%r5], 1;\n"
                                "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%m1, %m2, %m3, "
                                "%m4, %m5, %m6, %m7, %m8}, "
                                "[%rd1], %r1;\n"
                                "ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%f1, %f2, %f3, "
                                "%f4}, [%rd1];\n"
                                "atom.global.add.noftz.f16 %h1, [%rd1], %h1;\nret;\n}\n");

        assert_int_equal(count(checked.sites, "cp.async"), 8);
        assert_int_equal(count(checked.sites, "\n"), 13);
        assert_non_null(strstr(checked.text, "mov.b32 %gpuq_check_n, %r1;\n"));
        assert_non_null(strstr(checked.text, "selp.b32 %gpuq_check_n, 0, %gpuq_check_n, %q1;"));
        assert_non_null(strstr(checked.text, "setp.lt.u32 %gpuq_check_p, %gpuq_check_w, 16;"));
        assert_non_null(strstr(checked.text, "mul.lo.u32 %gpuq_check_n, %gpuq_check_n, 30;\n"
                                             "\tadd.u32 %gpuq_check_n, %gpuq_check_n, 32;"));
        assert_non_null(strstr(checked.text, "mov.u32 %gpuq_check_n, 2;"));
        assert_assembles(&checked, "sm_80");
}

static void memory_of_other_blocks_is_not_compared(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(HEAD_OF(
                "8.1",
                "sm_90") ".shared .align 16 .b8 tile[64];\n" ENTRY BEGIN
                         "mov.u32 %r5, tile;\nmapa.shared::cluster.u32 %r6, %r5, 1;\n"
                         "ld.shared::cluster.u32 %r7, [%r6];\nst.shared::cta.u32 [%r5], %r7;\n"
                         "cvta.shared.u64 %rd3, %rd2;\nmapa.u64 %rd4, %rd3, 1;\nld.u32 %r7, "
                         "[%rd4];\n"
                         "atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%f1, %f2};\nret;\n}\n");

        assert_int_equal(count(checked.sites, "\n"), 3);
        assert_non_null(strstr(checked.text, "isspacep.shared::cluster"));
        assert_non_null(strstr(checked.text, "mov.u32 %gpuq_check_n, 8;"));
        assert_assembles(&checked, "sm_90");
}

/* ---- what nobody wrote ------------------------------------------------------------------------ */

/* What the calls say about their accesses, in order: 1 reads, 2 writes. */
static void assert_effects(const Checked *checked, const char *wanted) {
        static const char word[] = "mov.u32 %gpuq_check_w, ";
        char effects[32] = "";
        size_t n = 0;

        for (const char *s = checked->text; (s = strstr(s, word)) && n + 1 < sizeof(effects); n++) {
                s += strlen(word);
                if (*s == '%') { /* of the lane */
                        n--;
                        continue;
                }
                effects[n] = *s;
        }
        assert_string_equal(effects, wanted);
}

static void each_call_says_whether_it_reads_and_writes(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(HEAD_OF(
                "7.0",
                "sm_80") ".shared .align 16 .b8 tile[64];\n" ENTRY BEGIN "mov.u32 %r5, tile;\n"
                         "ld.global.u32 %r3, [%rd1]; st.v2.u32 [%rd1], {%r3, %r3};\n"
                         "atom.global.add.u32 %r3, [%rd1], 1; red.global.add.u32 [%rd1], 1;\n"
                         "atom.global.exch.b32 %r3, [%rd1], 1;\n"
                         "cp.async.ca.shared.global [%r5], [%rd1], 16;\nret;\n}\n");

        assert_effects(&checked, "12222"
                                 "21");
        assert_int_equal(count(checked.text, "call gpuq_check_written,"), 1);
        assert_assembles(&checked, "sm_80");
}

/* A matrix has other bytes between its lines, which may be anything. */
static void a_matrix_is_not_read_but_written(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(
                HEAD_OF("7.0", "sm_80") ENTRY BEGIN
                ".reg .b32 %m<9>;\n"
                "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%m1, %m2, %m3, %m4, %m5, %m6, "
                "%m7, %m8}, [%rd1], %r1;\n"
                "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%m1, %m2, %m3, %m4}, "
                "%r1;\nret;\n}\n");

        assert_effects(&checked, "02");
        assert_assembles(&checked, "sm_80");
}

static void the_oldest_gpu_takes_it(void **state) {
        _cleanup_(checked_finish) Checked checked = rewrite(
                HEAD_OF("6.0", "sm_60") ENTRY BEGIN
                "ld.global.u32 %r3, [%rd1]; st.u32 [%rd1], %r3; red.global.add.u32 [%rd1], 1;\n"
                "ret;\n}\n");

        assert_assembles(&checked, "sm_75"); /* newer assemblers have no older target */
}

/* ---- what cannot be checked ------------------------------------------------------------------- */

static void what_cannot_be_checked_is_refused(void **state) {
        assert_refused(HEAD ENTRY BEGIN "multimem.red.global.add.u32 [%rd1], %r1;\nret; }\n",
                       "line 13: what multimem.red.global.add.u32 accesses cannot be checked");
        assert_refused(HEAD ENTRY BEGIN
                       "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;\nret; }\n",
                       "what cp.async.bulk.global.shared::cta.bulk_group accesses cannot be");
        assert_refused(HEAD ".extern .func (.param .b64 r) malloc(.param .b64 n);\n",
                       "a kernel calls malloc()");
        assert_refused(HEAD ".global .u32 gpuq_check;\n", "must not contain gpuq_check");
        assert_refused(HEAD ENTRY ".global .u32 own; ret; }\n",
                       "variable own is declared in a function");
        assert_refused("nonsense", "line 1: \"nonsense\" is not expected here");
}

/* ---- gpuq's own kernels -------------------------------------------------------------------------- */

static void the_built_in_kernels_can_be_checked(void **state) {
        _cleanup_(checked_finish) Checked checked = {};
        _cleanup_(freep) char *text = NULL;
        size_t n;

        assert_int_equal(backend_read_file(getenv("GPUQ_TEST_BUILTIN_PTX"), &text, &n), 0);
        checked = rewrite(text);
        assert_true(count(checked.sites, "\n") > 100);
        assert_assembles(&checked, "sm_75");
        assert_assembles(&checked, "sm_90");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_access_has_a_site_with_its_line),
                cmocka_unit_test(the_comparison_is_before_the_guard_of_its_instruction),
                cmocka_unit_test(the_rest_of_the_text_stays_as_it_is),
                cmocka_unit_test(memory_of_the_thread_and_of_parameters_is_not_compared),
                cmocka_unit_test(the_end_of_shared_memory_is_that_of_the_kernels_own),
                cmocka_unit_test(generic_addresses_are_told_apart_when_it_runs),
                cmocka_unit_test(newer_instructions_are_compared_too),
                cmocka_unit_test(memory_of_other_blocks_is_not_compared),
                cmocka_unit_test(each_call_says_whether_it_reads_and_writes),
                cmocka_unit_test(a_matrix_is_not_read_but_written),
                cmocka_unit_test(the_oldest_gpu_takes_it),
                cmocka_unit_test(what_cannot_be_checked_is_refused),
                cmocka_unit_test(the_built_in_kernels_can_be_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
