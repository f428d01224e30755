/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX with a fence: which instructions are compared, what is passed on, and what is refused. What is
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
#include "compiler/fence_rewrite.h"
#include "compiler/ptx/module.h"

#define HEAD_OF(version, target) ".version " version "\n.target " target "\n.address_size 64\n"
#define HEAD                     HEAD_OF("7.0", "sm_75")
#define ENTRY                    ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
#define BEGIN                                                                                      \
        ".reg .pred %q<4>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b16 "        \
        "%h<4>;\n"                                                                                 \
        "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u64 %rd2, 0;\n"     \
        "mov.f32 %f1, 0f00000000;\nsetp.eq.u32 %q1, %r1, 0;\n"
#define TELL           WORD("f", "32") "\t@!%gpuq_fence_ok st.global.u32 [%gpuq_fence_f], 1;\n\t"
#define WORD(name, at) "\tld.param.b64 %gpuq_fence_" name ", [gpuq_fence+" at "];\n"
#define BOUNDS         WORD("b0", "0") WORD("n0", "8") WORD("b1", "16") WORD("n1", "24")
#define INSIDE         BOUNDS INSIDE_RANGES
#define COMPARED       "%gpuq_fence_t, %gpuq_fence_a, %gpuq_fence_b0;"
#define INSIDE_RANGES                                                                              \
        "\tsub.s64 %gpuq_fence_t, %gpuq_fence_a, %gpuq_fence_b0;\n"                                \
        "\tsetp.lt.u64 %gpuq_fence_p, %gpuq_fence_t, %gpuq_fence_n0;\n"                            \
        "\tsub.s64 %gpuq_fence_t, %gpuq_fence_a, %gpuq_fence_b1;\n"                                \
        "\tsetp.lt.or.u64 %gpuq_fence_p, %gpuq_fence_t, %gpuq_fence_n1, %gpuq_fence_p;\n"

static Fenced rewrite(const char *text) {
        Fenced fenced = {};
        char *error = NULL;
        int r = fence_rewrite(text, strlen(text), &fenced, &error);

        if (r)
                print_message("%s\n", error ? error : "");
        free(error);
        assert_int_equal(r, 0);
        return fenced;
}

static void assert_refused(const char *text, const char *wanted) {
        _cleanup_(freep) char *error = NULL;
        Fenced fenced;

        assert_int_equal(fence_rewrite(text, strlen(text), &fenced, &error),
                         FENCE_REWRITE_E_REFUSED);
        if (!strstr(error, wanted))
                print_message("%s\n", error);
        assert_non_null(strstr(error, wanted));
}

/* Our reader takes it; so does ptxas, if there is one. */
static void assert_assembles(const Fenced *fenced, const char *target) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL, *command = NULL;
        char path[] = "/tmp/gpuq-fence-XXXXXX";
        const char *ptxas = getenv("GPUQ_TEST_PTXAS");
        int fd, status;

        if (ptx_module_read(fenced->text, fenced->n_text, &module, &error))
                fail_msg("%s\n%s", error, fenced->text);
        if (!ptxas)
                return;
        fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(backend_write_file(path, fenced->text, fenced->n_text), 0);
        assert_true(asprintf(&command, "%s -arch=%s -o /dev/null %s", ptxas, target, path) > 0);
        status = system(command);
        if (WEXITSTATUS(status) != 0)
                print_message("%s\n", fenced->text);
        assert_int_equal(WEXITSTATUS(status), 0);
        unlink(path);
}

/* Not counting entries for one range, which stand behind all else. */
static size_t count(const char *text, const char *what) {
        const char *end = strstr(text, "k$gpuq_fence(");
        size_t n = 0;

        for (const char *s = text; (s = strstr(s, what)) && (!end || s < end); s++)
                n++;
        return n;
}

/* ---- accesses ---------------------------------------------------------------------------- */

static void a_load_outside_gives_zeros_and_a_store_nothing(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "st.global.f32 [%rd1+4], %f1;\nbar.sync 0;\n"
                                         "ld.global.v2.u32 {%r3, _}, [%rd1];\n"
                                         "ret;\n}\n");

        assert_non_null(strstr(fenced.text, "k(.param .u64 p, .param .u32 n, .param .align 8 .b8 "
                                            "gpuq_fence[40])"));
        assert_non_null(strstr(fenced.text, "\tadd.s64 %gpuq_fence_a, %rd1, 4;\n" INSIDE
                                            "\tand.pred %gpuq_fence_ok, %gpuq_fence_ok, "
                                            "%gpuq_fence_p;\n"
                                            "\t@%gpuq_fence_p st.global.f32 [%rd1+4], %f1;"));
        assert_non_null(strstr(fenced.text, "\t@%gpuq_fence_p ld.global.v2.u32 {%r3, _}, [%rd1];\n"
                                            "\tnot.pred %gpuq_fence_q, %gpuq_fence_p;\n"
                                            "\t@%gpuq_fence_q mov.b32 %r3, 0;\n"));
        assert_non_null(
                strstr(fenced.text, "@!%gpuq_fence_ok st.global.u32 [%gpuq_fence_f], 1;\n\tret;"));
        assert_assembles(&fenced, "sm_75");
}

static void an_entry_for_one_range_compares_with_one(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN
                        "st.global.f32 [%rd1], %f1;\nret;\n}\n.entry idle()\n{\nret;\n}\n");
        const char *one_range = strstr(fenced.text, ".visible .entry k$gpuq_fence(");

        assert_non_null(one_range);
        assert_non_null(strstr(one_range, "\t@%gpuq_fence_p st.global.f32"));
        assert_null(strstr(one_range, "%gpuq_fence_t, %gpuq_fence_n1"));
        assert_null(strstr(fenced.text, "idle$gpuq_fence"));
        assert_assembles(&fenced, "sm_75");
}

static void a_kernel_may_be_declared_before(void **state) {
#define DECLARED ".visible .entry k(.param .u64 p, .param .u32 n);\n"
        static const char *const between[] = {"", ".global .u32 x[2] = {1, 2};\n",
                                              ".func f()\n{ ret; }\n"};

        for (size_t i = 0; i < ARRAY_SIZE(between); i++) {
                _cleanup_(freep) char *text = NULL;
                Fenced fenced;
                const char *one_range;

                assert_true(asprintf(&text, "%s%s%s", HEAD DECLARED, between[i],
                                     ENTRY BEGIN "st.global.f32 [%rd1], %f1;\nret;\n}\n") > 0);
                fenced = rewrite(text);
                one_range = strstr(fenced.text, "k$gpuq_fence(");
                assert_non_null(one_range);
                assert_null(strstr(one_range + 1, "k$gpuq_fence("));
                assert_assembles(&fenced, "sm_75");
                fenced_finish(&fenced);
        }
}

static void the_predicate_of_an_instruction_stays_in_force(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "L: @!%q1 atom.global.add.u32 %r3, [%rd1], 1;\n"
                                         "@%q1 red.global.add.u32 [%rd1], 1;\n@%q1 ret;\n"
                                         "bra L;\n}\n");

        assert_non_null(
                strstr(fenced.text,
                       "\tnot.pred %gpuq_fence_g, %q1;\n"
                       "\t@%gpuq_fence_g and.pred %gpuq_fence_ok, %gpuq_fence_ok, %gpuq_fence_p;\n"
                       "\tand.pred %gpuq_fence_q, %gpuq_fence_p, %gpuq_fence_g;\n"
                       "\t@%gpuq_fence_q atom.global.add.u32 %r3, [%rd1], 1;\n"
                       "\tnot.pred %gpuq_fence_q, %gpuq_fence_p;\n"
                       "\tand.pred %gpuq_fence_q, %gpuq_fence_q, %gpuq_fence_g;\n"
                       "\t@%gpuq_fence_q mov.b32 %r3, 0;\n"));
        assert_int_equal(count(fenced.text, "\t@%gpuq_fence_q red.global.add.u32"), 1);
        assert_int_equal(count(fenced.text, "[%gpuq_fence_f], 1;\n\t@%q1 ret;"), 1);
        assert_assembles(&fenced, "sm_75");
}

static void own_memory_of_threads_and_blocks_costs_nothing(void **state) {
        static const char text[] =
                HEAD ".const .u32 fixed[4];\n.global .u32 seen[4];\n" ENTRY BEGIN
                     ".local .align 4 .b8 own[16];\n.shared .u32 tile[8];\n"
                     "ld.local.u32 %r3, [own]; ld.const.u32 %r3, [fixed+4]; ld.shared.u32 %r3, "
                     "[tile+4]; st.global.u32 [seen+12], %r3;\nret;\n}\n";
        _cleanup_(fenced_finish) Fenced fenced = rewrite(text);

        assert_int_equal(count(fenced.text, "setp.lt.u64 %gpuq_fence_p, %gpuq_fence_t"), 0);
        assert_assembles(&fenced, "sm_75");
}

static void a_generic_address_may_be_of_the_windows_of_the_thread(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "ld.u32 %r3, [%rd1]; st.u8 [%rd1], %r3;\nret;\n}\n");

        assert_int_equal(count(fenced.text, "isspacep.shared %gpuq_fence_q, %gpuq_fence_a;\n"
                                            "\tor.pred %gpuq_fence_p"),
                         2);
        assert_int_equal(count(fenced.text, "isspacep.local"), 2);
        assert_assembles(&fenced, "sm_75");
}

static void the_modules_own_variables_are_allowed(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(
                HEAD ".global .u32 seen[4];\n.global .align 4 .f32 one = 0f3f800000;\n" ENTRY BEGIN
                     "mov.u64 %rd3, seen; ld.global.u32 %r3, [%rd3]; st.global.u32 [seen+16], "
                     "%r3;\nret;\n}\n");

        assert_int_equal(count(fenced.text, "\t@!%gpuq_fence_p call (%gpuq_fence_x), "
                                            "gpuq_fence_own,"),
                         2);
        assert_non_null(strstr(fenced.text, "\tmov.u64 %gpuq_fence_begin, seen;\n"));
        assert_assembles(&fenced, "sm_75");
}

static void both_ends_of_a_matrix_are_compared(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(
                HEAD_OF("7.0", "sm_75") ENTRY BEGIN
                "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r3,%r4,%r5,%r6,%r7,%r8,%r9,"
                "%r10}, [%rd1], %r1;\nret;\n}\n");

        assert_non_null(strstr(fenced.text, "\tmul.wide.u32 %gpuq_fence_t, %gpuq_fence_x, 30;\n"));
        assert_non_null(strstr(fenced.text, "\t@!%gpuq_fence_p exit;\n\twmma.load"));
        assert_assembles(&fenced, "sm_75");
}

/* A comment may stand between "@" and the predicate, and may have an "@" too. */
static void the_comparison_is_before_the_guard_of_its_instruction(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(
                HEAD ENTRY BEGIN
                "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r3,%r4,%r5,%r6,%r7,%r8,%r9,"
                "%r10}, [%rd1], %r1;\n"
                "@/*@*/ %q1 wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r3,%r4,%r5,%r6,%r7,"
                "%r8,%r9,%r10}, [%rd1], %r1;\n@/*@*/%q1 st.global.f32 [%rd1], %f1;\nret;\n}\n");

        assert_non_null(strstr(fenced.text, "\t@!%gpuq_fence_p exit;\n\t@%q1 wmma.load"));
        assert_non_null(strstr(fenced.text, "\t@%gpuq_fence_q st.global.f32 [%rd1], %f1;"));
        assert_int_equal(count(fenced.text, "/*@*/"), 0);
        assert_assembles(&fenced, "sm_75");
}

static void asynchronous_copies_are_compared_where_they_read(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(HEAD_OF(
                "7.0", "sm_80") ".shared .align 16 .b8 tile[64];\n" ENTRY BEGIN
                                "mov.u32 %r3, tile; cp.async.ca.shared.global [%r3], [%rd1], 16;\n"
                                "cp.async.wait_all;\nret;\n}\n");

        assert_int_equal(count(fenced.text, "\t@%gpuq_fence_p cp.async.ca"), 1);
        assert_assembles(&fenced, "sm_80");
}

/* ---- accesses that are compared together --------------------------------------------------------- */

static void accesses_of_one_address_are_compared_once(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "ld.global.f32 %f2, [%rd1+-4];\nadd.f32 %f1, %f1, %f2;\n"
                                         "ld.global.v4.f32 {%f3,%f4,%f5,%f6}, [%rd1+16];\n"
                                         "st.global.f32 [%rd1], %f1;\nret;\n}\n");
        const char *one_range = strstr(fenced.text, "k$gpuq_fence(");

        assert_int_equal(count(fenced.text, COMPARED), 1);
        assert_non_null(strstr(
                fenced.text,
                "\tadd.s64 %gpuq_fence_a, %rd1, -4;\n" BOUNDS
                "\tsub.s64 %gpuq_fence_t, %gpuq_fence_a, %gpuq_fence_b0;\n"
                "\tsetp.ge.s64 %gpuq_fence_p, %gpuq_fence_t, 0;\n"
                "\tadd.s64 %gpuq_fence_t, %gpuq_fence_t, 20;\n"
                "\tsetp.lt.and.u64 %gpuq_fence_p, %gpuq_fence_t, %gpuq_fence_n0, %gpuq_fence_p;\n"
                "\tsub.s64 %gpuq_fence_t, %gpuq_fence_a, %gpuq_fence_b1;\n"
                "\tsetp.ge.s64 %gpuq_fence_q, %gpuq_fence_t, 0;\n"
                "\tadd.s64 %gpuq_fence_t, %gpuq_fence_t, 20;\n"
                "\tsetp.lt.and.u64 %gpuq_fence_q, %gpuq_fence_t, %gpuq_fence_n1, %gpuq_fence_q;\n"
                "\tor.pred %gpuq_fence_p, %gpuq_fence_p, %gpuq_fence_q;\n"
                "\tand.pred %gpuq_fence_ok, %gpuq_fence_ok, %gpuq_fence_p;\n"
                "\t@%gpuq_fence_p ld.global.f32 %f2, [%rd1+-4];"));
        assert_non_null(strstr(one_range, "\tand.pred %gpuq_fence_ok"));
        assert_non_null(strstr(fenced.text, "\t@%gpuq_fence_p st.global.f32 [%rd1], %f1;"));
        assert_int_equal(count(fenced.text, "\tnot.pred %gpuq_fence_q, %gpuq_fence_p;\n"), 2);
        assert_assembles(&fenced, "sm_75");
}

/* In a run: the first that is outside makes those behind it do nothing too. */
static void accesses_that_follow_each_other_have_one_predicate(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "ld.global.f32 %f2, [%rd1];\nld.global.f32 %f3, [%rd2];\n"
                                         "st.global.f32 [%rd1+4], %f2;\nret;\n}\n");
        const char *one_range = strstr(fenced.text, "k$gpuq_fence(");

        assert_int_equal(count(fenced.text, COMPARED), 2);
        assert_int_equal(count(fenced.text, "\tand.pred %gpuq_fence_ok"), 1);
        assert_int_equal(count(fenced.text, "\tmov.pred %gpuq_fence_h, %gpuq_fence_p;\n"), 1);
        assert_int_equal(count(fenced.text, "\tand.pred %gpuq_fence_p, %gpuq_fence_p, "
                                            "%gpuq_fence_h;\n\tand.pred %gpuq_fence_ok"),
                         1);
        assert_non_null(strstr(one_range, "\tsetp.lt.and.u64 %gpuq_fence_p, %gpuq_fence_t, "
                                          "%gpuq_fence_n0, %gpuq_fence_p;\n"
                                          "\tand.pred %gpuq_fence_ok, %gpuq_fence_ok, "
                                          "%gpuq_fence_p;\n\t@%gpuq_fence_p ld.global.f32 %f3"));
        assert_null(strstr(one_range, "%gpuq_fence_h, %gpuq_fence_p"));
        assert_assembles(&fenced, "sm_75");
}

#define L(register) "ld.global.u32 %r3, [" register "];\n"

/* How many comparisons there are, and how many runs: what is compared by itself is one too. */
static const struct {
        const char *body;
        size_t n_compared, n_runs;
} spans[] = {
        {L("%rd1") L("%rd1+8"), 1, 1},
        {L("%rd1") "/* @ L: } */ // ;\n" L("%rd1+8"), 1, 1},
        {L("%rd1") L("%rd2") L("%rd1+8") L("%rd2+-8"), 2, 1},
        {L("%rd1") L("%rd2") L("%rd1"), 2, 1},
        {L("%rd1+4") L("%rd1+-12"), 1, 1},
        {L("%rd1") ".shared .u32 tile[8];\n" L("%rd1"), 2, 2},
        {L("%rd1") "ld.param.u32 %r1, [n];\nselp.b32 %r4, %r1, %r2, %q1;\n" L("%rd1"), 1, 1},
        /* the base is another one */
        {"ld.global.u64 %rd1, [%rd1];\n" L("%rd1"), 2, 1},
        {L("%rd1") "ld.global.v2.u64 {%rd3, %rd1}, [%rd2];\n" L("%rd1"), 3, 1},
        {L("%rd1") "ld.param.u64 %rd1, [p];\n" L("%rd1"), 2, 1},
        {L("%rd1") "mov.b64 %rd1, {%r1, %r2};\n" L("%rd1"), 2, 1},
        {L("%rd1") "mov.u64 %rd1, %rd2;\n" L("%rd1"), 2, 1},
        {L("%rd1") "@%q1 mov.u64 %rd1, %rd2;\n" L("%rd1"), 2, 1},
        {L("%rd1") "@%q1 add.s64 %rd1, %rd1, 4;\n" L("%rd1"), 2, 1},
        {L("%rd1") "add.s64 %rd1, %rd1, %rd1;\n" L("%rd1"), 2, 1},
        {L("%rd1") "mad.wide.u32 %rd1, %r1, 4, %rd1;\n" L("%rd1"), 2, 1},
        {L("%rd1") "add.s64 %rd1, %rd1, 0x7fffffffffffffff;\n" L("%rd1"), 2, 1},
        {L("%rd1") "sub.s64 %rd1, %rd1, 4;\n" L("%rd1"), 2, 1},
        /* the same, plus a constant */
        {L("%rd1") "add.s64 %rd1, %rd1, 4;\n" L("%rd1"), 1, 1},
        {"mov.u64 %rd3, %rd1;\n" L("%rd1") L("%rd3+4"), 1, 1},
        {"mov.u64 %rd3, %rd1;\n" L("%rd1") "mov.u64 %rd1, 0;\n" L("%rd3+4") L("%rd1"), 2, 1},
        {"add.s64 %rd3, %rd1, -8;\n" L("%rd3+4") L("%rd1"), 1, 1},
        {"mov.u64 %rd3, %rd1;\n@%q1 bra M;\nM:\n" L("%rd1") L("%rd3"), 2, 1},
        {L("%rd1") "@%q1 mov.u64 %rd2, %rd1;\n" L("%rd2"), 2, 1},
        {"add.s64 %rd3, %rd1, !268435456;\n" L("%rd1") L("%rd3+268435456"), 1, 1}, /* !4 is 0 */
        {"add.s64 %rd3, %rd1, !0;\n" L("%rd1") L("%rd3+268435456"), 2, 1},
        /* far from each other, and beyond all addresses */
        {L("%rd1+-300000000") L("%rd1+300000000"), 2, 2},
        {L("%rd1+-268435456") L("%rd1+268435456"), 1, 1},
        {L("%rd1") L("%rd1+9223372036854775807"), 2, 2},
        {L("%rd1") L("%rd1+-9223372036854775808"), 2, 2},
        {L("%rd1") L("%rd1+18446744073709551615"), 1, 1}, /* -1 */
        {L("%rd1+268435456") "add.s64 %rd1, %rd1, 268435456;\n" L("%rd1+268435456"), 2, 1},
        {L("%rd1+268435456") "add.s64 %rd1, %rd1, 268435456;\nadd.s64 %rd1, %rd1, 268435456;\n" L(
                 "%rd1"),
         2, 1},
        /* predicates */
        {"@%q1 " L("%rd1") "@%q1 " L("%rd1+4"), 1, 1},
        {"@%q1 " L("%rd1") L("%rd1+4"), 2, 2},
        {"@%q1 " L("%rd1") "@!%q1 " L("%rd1+4"), 2, 2},
        {"@%q1 " L("%rd1") "@%q2 " L("%rd1+4"), 2, 2},
        {"@%q1 " L("%rd1") "setp.eq.u32 %q2|%q1, %r1, 1;\n@%q1 " L("%rd1+4"), 2, 2},
        {"@%q1 " L("%rd1") "not.pred %q1, %q1;\n@%q1 " L("%rd1+4"), 2, 2},
        /* what may go elsewhere, end the thread or write to its stack */
        {L("%rd1") "M:\n" L("%rd1"), 2, 2},
        {L("%rd1") "@%q1 bra M;\n" L("%rd1") "M:\n", 2, 2},
        {L("%rd1") "@%q1 exit;\n" L("%rd1"), 2, 2},
        {L("%rd1") "@%q1 ret;\n" L("%rd1"), 2, 2},
        {L("%rd1") "@%q1 trap;\n" L("%rd1"), 2, 2},
        {L("%rd1") "bar.sync 0;\n" L("%rd1"), 2, 2},
        {L("%rd1") "membar.gl;\n" L("%rd1"), 2, 2},
        {L("%rd1") "shfl.sync.idx.b32 %r4|%q2, %r3, 0, 31, -1;\n" L("%rd1"), 2, 2},
        {L("%rd1") "call e, ();\n" L("%rd1"), 2, 2},
        {L("%rd1") "st.local.u32 [own], %r3;\n" L("%rd1"), 2, 2},
        {L("%rd1") "st.shared.u32 [block], %r3;\n" L("%rd1"), 2, 2},
        {L("%rd1") "st.u32 [%rd1], %r3;\n" L("%rd1"), 3, 3},
        {L("%rd1") "ld.u32 %r4, [%rd1];\n" L("%rd1"), 3, 3},
        {L("%rd1") "ld.shared.u32 %r4, [block];\nld.local.u32 %r4, [own];\n" L("%rd1"), 1, 1},
        {L("%rd1") "ld.shared.u64 %rd1, [block];\n" L("%rd1"), 2, 1},
        /* what others may wait for */
        {L("%rd1") "atom.global.add.u32 %r4, [%rd1+4], 1;\n" L("%rd1"), 3, 3},
        {L("%rd1") "red.global.add.u32 [%rd1+4], 1;\n" L("%rd1"), 3, 3},
        {L("%rd1") "st.volatile.global.u32 [%rd1+4], 1;\n" L("%rd1"), 3, 3},
        {L("%rd1") "ld.volatile.global.u32 %r4, [%rd1+4];\n" L("%rd1"), 3, 3},
        {L("%rd1") "ld.acquire.gpu.global.u32 %r4, [%rd1+4];\n" L("%rd1"), 3, 3},
        {"ld.volatile.global.u64 %rd1, [%rd1];\n" L("%rd1"), 2, 2},
        /* what stands between */
        {"{\n" L("%rd1") "}\n" L("%rd1"), 2, 2},
        {L("%rd1") "{\n.reg .b64 %rd1;\nmov.u64 %rd1, %rd2;\n" L("%rd1") "}\n" L("%rd1"), 3, 3},
        {L("%rd1") "{ " L("%rd1") ".reg .b64 %rd1; mov.u64 %rd1, 0;\n" L("%rd1") "}\n", 3, 3},
        {L("%rd1") ".loc 1 3 4\n" L("%rd1"), 1, 1},
        {".loc 1 2 3\n" L("%rd1") ".loc 1 3 4, function_name $name, inlined_at 1 2 3\n" L("%rd1"),
         1, 1},
        {".loc 1 2 3\n" L("%rd1") ".loc 1 3 4, function_name $name + 4, inlined_at 1 2 3\nM: " L(
                 "%rd1"),
         2, 2},
        {".loc 1 3 4\n" L("%rd1") "M:\n.loc 1 3 5\n" L("%rd1"), 2, 2},
        {L("%rd1") ".reg .b32 x;\n" L("%rd1"), 2, 2},
        {L("%rd1") ".pragma \"nounroll\";\n" L("%rd1"), 2, 2},
};

#define SPANS_HEAD                                                                                 \
        HEAD_OF("7.5", "sm_75")                                                                    \
        ".file 1 \"a.cu\"\n.func e()\n{ exit; }\n"
#define SPANS_END ".section .debug_str\n{\n$name:\n.b8 65\n.b8 0\n}\n"

static void print_span_case(FILE *out, const char *name, const char *body) {
        fprintf(out, ".visible .entry %s(.param .u64 p, .param .u32 n)\n{\n%s%s%sret;\n}\n", name,
                BEGIN,
                ".local .align 4 .b8 own[16];\n.shared .align 8 .u32 block[8];\n"
                "mov.pred %q2, %q1;\nmov.u64 %rd3, 0;\n",
                body);
}

static void what_is_compared_together_is_certain_to_be_reached(void **state) {
        _cleanup_(freep) char *all = NULL;
        size_t n_all;
        FILE *out = open_memstream(&all, &n_all);
        Fenced fenced;

        fputs(SPANS_HEAD, out);
        for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
                _cleanup_(freep) char *text = NULL;
                size_t n_text;
                FILE *one = open_memstream(&text, &n_text);
                char name[8];

                fputs(SPANS_HEAD, one);
                print_span_case(one, "k", spans[i].body);
                fputs(SPANS_END, one);
                fclose(one);
                fenced = rewrite(text);
                if (count(fenced.text, COMPARED) != spans[i].n_compared ||
                    count(fenced.text, "and.pred %gpuq_fence_ok, ") != spans[i].n_runs)
                        fail_msg("%s\n%s", spans[i].body, fenced.text);
                fenced_finish(&fenced);
                snprintf(name, sizeof(name), "k%zu", i);
                print_span_case(out, name, spans[i].body);
        }
        fputs(SPANS_END, out);
        fclose(out);
        fenced = rewrite(all);
        assert_assembles(&fenced, "sm_75");
        fenced_finish(&fenced);
}

/* The last one has the most bytes behind it; the first one reaches the furthest. */
static void all_bytes_and_stores_of_a_span_count_for_variables(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ".global .u32 seen[4];\n" ENTRY BEGIN
                             "mov.u64 %rd3, seen; ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd3+4];\n"
                             "st.global.u8 [%rd3+8], %h1; ld.global.u32 %r3, [%rd3];\nret;\n}\n");

        assert_int_equal(count(fenced.text, COMPARED), 1);
        assert_int_equal(count(fenced.text, "\tmov.u32 %gpuq_fence_y, 20;\n"
                                            "\tmov.u32 %gpuq_fence_x, 0;\n"
                                            "\tmov.u32 %gpuq_fence_w, 1;\n"),
                         1);
        assert_assembles(&fenced, "sm_75");
}

static void any_number_of_accesses_can_be_in_a_run(void **state) {
        _cleanup_(freep) char *text = NULL;
        size_t n_text, n = 20000;
        FILE *out = open_memstream(&text, &n_text);
        Fenced fenced;

        fputs(HEAD ENTRY BEGIN ".reg .b64 %a<20>;\n", out);
        for (unsigned i = 0; i < 20; i++)
                fprintf(out, "add.s64 %%a%u, %%rd1, %%rd2;\n", i);
        for (unsigned i = 0; i < n; i++)
                fprintf(out, "ld.global.u32 %%r3, [%%a%u+%u];\n", i / 10 % 2 ? i % 5 : i % 20,
                        4 * i);
        fputs("ret;\n}\n", out);
        fclose(out);
        fenced = rewrite(text);
        assert_true(count(fenced.text, COMPARED) < n);
        assert_int_equal(count(fenced.text, "and.pred %gpuq_fence_ok, "), 1);
        fenced_finish(&fenced);
}

/* ---- functions -------------------------------------------------------------------------------- */

#define FUNCTION                                                                                   \
        ".func (.param .b32 out) f(.param .b64 x)\n{ .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"         \
        "ld.param.u64 %rd1, [x]; ld.u32 %r1, [%rd1]; st.param.b32 [out], %r1; ret; }\n"            \
        ".func g()\n{ ret; }\n.func h\n{ ret; }\n"

static void calls_pass_the_fence_on(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(
                HEAD ".func (.param .b32 out) f(.param .b64 x);\n" FUNCTION ENTRY BEGIN
                     "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1; call.uni (b), f, "
                     "(a); ld.param.b32 %r4, [b]; }\ncall g, (); call.uni h;\nret;\n}\n");

        assert_int_equal(count(fenced.text, "f(.param .align 8 .b8 gpuq_fence[40], .param .b64 x)"),
                         2);
        assert_non_null(strstr(fenced.text, "g(.param .align 8 .b8 gpuq_fence[40])"));
        assert_non_null(strstr(fenced.text, "h(.param .align 8 .b8 gpuq_fence[40])"));
        assert_non_null(strstr(fenced.text, "call.uni (b), f, (gpuq_fence_c, a);"));
        assert_non_null(strstr(fenced.text, "call g, (gpuq_fence_c);"));
        assert_non_null(strstr(fenced.text, "call.uni h, (gpuq_fence_c);"));
        assert_assembles(&fenced, "sm_75");
}

static void a_call_by_pointer_goes_to_functions_of_the_module_alone(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD FUNCTION ENTRY BEGIN
                        "mov.u64 %rd3, f;\n"
                        "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1;\n"
                        "P: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
                        "call (b), %rd3, (a), P; ld.param.b32 %r4, [b]; }\nret;\n}\n");

        assert_non_null(
                strstr(fenced.text, "_ (.param .align 8 .b8 gpuq_fence_p[40], .param .b64 _)"));
        assert_int_equal(count(fenced.text, "\tsetp.eq.or.u64 %gpuq_fence_p, %gpuq_fence_t, %rd3"),
                         1);
        assert_non_null(strstr(fenced.text, "\t@!%gpuq_fence_p exit;\n"));
        assert_assembles(&fenced, "sm_75");
}

static void a_branch_by_a_table_stays_within_it(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "T: .branchtargets A, B;\nbrx.idx %r1, T;\nA: ret;\nB: "
                                         "ret;\n}\n");

        assert_non_null(strstr(fenced.text, "\tmin.u32 %gpuq_fence_x, %r1, 1;\n"
                                            "\tbrx.idx %gpuq_fence_x, T;"));
        assert_assembles(&fenced, "sm_75");
}

/* ---- that an access was outside is told --------------------------------------------------------- */

static void a_branch_back_does_not_forget_it(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY "again: " BEGIN "st.global.f32 [%rd1], %f1;\n"
                                   "@%q1 bra again;\nret;\n}\n");
        const char *begin = strstr(fenced.text, "\tsetp.eq.u64 %gpuq_fence_ok, ");

        assert_non_null(begin);
        assert_true(begin < strstr(fenced.text, "again:"));
        assert_true(strstr(fenced.text, "[gpuq_fence+32];") < begin);
        assert_assembles(&fenced, "sm_75");
}

static void it_is_told_at_the_end_of_a_body_without_ret(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ENTRY BEGIN "st.global.f32 [%rd1], %f1;\n// }\n}\n");

        assert_non_null(strstr(fenced.text, "// }\n\n" TELL "}"));
        assert_int_equal(count(fenced.text, TELL), 1);
        assert_assembles(&fenced, "sm_75");
}

static void it_is_told_before_a_call_that_may_end_the_thread(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD ".func e()\n{ exit; }\n" ENTRY BEGIN
                             "st.global.f32 [%rd1], %f1;\ncall e, ();\nmov.u64 %rd3, e;\n"
                             "P: .callprototype _ ();\n@%q1 call %rd3, (), P;\nret;\n}\n");

        assert_int_equal(count(fenced.text, TELL "\n\t{\n\t.param .align 8 .b8 gpuq_fence_c"), 2);
        assert_assembles(&fenced, "sm_75");
}

/* ---- names ------------------------------------------------------------------------------------------ */

static void a_name_of_the_module_is_not_one_of_a_function_too(void **state) {
#define MODULE HEAD ".global .u64 seen[4];\n.func foo()\n{ ret; }\n"
        static const char *const texts[] = {
                MODULE ENTRY BEGIN ".reg .b64 foo; ret;\n}\n",
                MODULE ENTRY BEGIN "{ .reg .b64 foo; }\nret;\n}\n",
                MODULE ENTRY BEGIN ".reg .b64 x, foo; ret;\n}\n",
                MODULE ENTRY BEGIN "foo: ret;\n}\n",
                MODULE ENTRY BEGIN "foo: .branchtargets A;\nA: ret;\n}\n",
                MODULE ENTRY BEGIN "foo: .callprototype _ ();\nret;\n}\n",
                MODULE ENTRY BEGIN "{ .param .b64 foo; }\nret;\n}\n",
                MODULE ENTRY BEGIN ".shared .b64 foo; ret;\n}\n",
                MODULE ENTRY BEGIN "{ .local .b64 foo; }\nret;\n}\n",
                MODULE ".entry k(.param .b64 foo)\n{ ret; }\n",
                MODULE ".func j(.reg .b64 foo)\n{ ret; }\n",
                MODULE ".func (.reg .b64 foo) j()\n{ ret; }\n",
                HEAD ENTRY BEGIN ".reg .b64 foo; ret;\n}\n.func foo()\n{ ret; }\n",
        };
        static const char *const ranges[] = {
                HEAD ".func %rd2()\n{ ret; }\n" ENTRY BEGIN "ret;\n}\n",
                HEAD ".func %rd12()\n{ ret; }\n" ENTRY ".reg .b64 %rd1<5>; ret;\n}\n",
                HEAD ENTRY BEGIN "ret;\n}\n.global .u64 %rd2;\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                assert_refused(texts[i], "foo is declared twice");
        assert_refused(MODULE ENTRY BEGIN ".reg .b64 seen; ret;\n}\n",
                       "line 16: seen is declared twice");
        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
                assert_refused(ranges[i], " is declared twice");
        assert_refused(HEAD ENTRY ".reg .b32 %laneid; ret;\n}\n", "%laneid is declared twice");
        assert_refused(HEAD ".global .b32 %envreg1;\n" ENTRY "ret;\n}\n",
                       "%envreg1 is declared twice");
}

static void names_of_different_functions_may_be_the_same(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(
                HEAD ".global .u32 r, %rdx, %r;\n.func a(.param .b64 p)\n{ .reg .b64 %rd<3>; A: "
                     "ret; }\n" ENTRY BEGIN "A: st.global.f32 [%rd1], %f1;\nret;\n}\n");

        assert_assembles(&fenced, "sm_75");
}

/* ---- what is printed -------------------------------------------------------------------------------- */

#define VPRINTF                                                                                    \
        ".extern .func (.param .b32 func_retval0) vprintf\n(\n.param .b64 vprintf_param_0,\n"      \
        ".param .b64 vprintf_param_1\n);\n"
#define ASSERTFAIL                                                                                 \
        ".extern .func __assertfail(.param .b64 m, .param .b64 o, .param .b32 l, .param .b64 n, "  \
        ".param .b64 s);\n"
#define PRINT                                                                                      \
        "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b64 "     \
        "[b], %rd2; call.uni (c), vprintf, (a, b); ld.param.b32 %r4, [c]; }\n"

/* So no name of the module is one of them: those with gpuq_fence in them are refused. */
static void all_that_is_added_has_names_of_the_fence(void **state) {
        _cleanup_(fenced_finish) Fenced fenced = rewrite(
                HEAD VPRINTF ASSERTFAIL ".visible .global .b8 %gpuq_a[1024];\n.global .align 1 .b8 "
                                        "$str[3] = {37, 100, 0};\n" FUNCTION ENTRY BEGIN
                                        "mov.u64 %rd3, f;\nmov.u32 %r3, %envreg1;\n" PRINT
                                        "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %rd1;\n"
                                        "P: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
                                        "call (b), %rd3, (a), P; ld.param.b32 %r4, [b]; }\n"
                                        "st.global.f32 [%rd1], %f1;\nret;\n}\n");
        const char *s = fenced.text;

        assert_non_null(strstr(fenced.text, "mov.u64 %gpuq_fence_begin, %gpuq_a;\n"));
        for (; (s = strstr(s, "gpuq_")); s++)
                assert_true(strncmp(s, "gpuq_fence", 10) == 0 ||
                            strncmp(s, "gpuq_a[1024]", 12) == 0 ||
                            strncmp(s, "gpuq_a;\n\tcvta", 13) == 0);
        assert_assembles(&fenced, "sm_75");
}

static void only_the_modules_own_texts_are_printed(void **state) {
        _cleanup_(fenced_finish) Fenced fenced =
                rewrite(HEAD VPRINTF ".global .align 1 .b8 $str[4] = {37, 100, 10};\n"
                                     ".global .align 1 .b8 $str1[3] = {37, 115};\n"
                                     ".global .align 1 .b8 $str2[4] = {37, 37, 115, 0};\n"
                                     ".global .align 1 .b8 $str3[6] = {37, 53, 37, 115, 0};\n"
                                     ".global .align 1 .b8 $str4[7] = {37, 37, 37, 37, 100, 0};\n"
                                     ".global .align 1 .b8 endless[2] = {65, 65};\n"
                                     ".global .align 1 .b8 one[2] = {65, !0};\n" ENTRY BEGIN PRINT
                                     "ret;\n}\n");

        assert_non_null(strstr(fenced.text, "call.uni (c), gpuq_fence_vprintf, (a, b);"));
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, $str;"), 1);
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, $str1;"), 0);
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, $str2;"), 1);
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, $str3;"), 0);
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, $str4;"), 1);
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, endless;"), 0);
        assert_int_equal(count(fenced.text, "mov.u64 %gpuq_fence_o, one;"), 0); /* !0 is 1 */
        assert_assembles(&fenced, "sm_75");
}

/* ---- the words of a cooperative launch ---------------------------------------------------------------- */

static void words_of_the_grid_are_for_modules_that_read_where_they_are(void **state) {
        _cleanup_(fenced_finish) Fenced reads = rewrite(
                HEAD ENTRY BEGIN "mov.u32 %r3, %envreg2;\nst.global.f32 [%rd1], %f1;\nret;\n}\n");
        _cleanup_(fenced_finish) Fenced says =
                rewrite(HEAD ENTRY BEGIN "// %envreg2\nst.global.f32 [%rd1], %f1;\nret;\n}\n");

        assert_int_equal(count(reads.text, "mov.u32 %gpuq_fence_x, %envreg1;\n"), 1);
        assert_non_null(strstr(reads.text, "\tsetp.ne.and.u64 %gpuq_fence_p, %gpuq_fence_begin, 0, "
                                           "%gpuq_fence_p;\n\t@%gpuq_fence_p ret;\n"));
        assert_null(strstr(says.text, "gpuq_fence_own"));
        assert_assembles(&reads, "sm_75");
        assert_assembles(&says, "sm_75");
}

/* ---- refusals ------------------------------------------------------------------------------------ */

#define MATRIX(stride)                                                                             \
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10}, "   \
        "[%rd1], " stride "; ret;\n}\n"

static void what_cannot_be_fenced_is_refused(void **state) {
        static const struct {
                const char *text, *wanted;
        } cases[] = {
                {HEAD ENTRY BEGIN "discard.global.L2 [%rd1], 128; ret;\n}\n", "what discard"},
                {HEAD ENTRY BEGIN ".reg .b64 %gpuq_fence_b0; ret;\n}\n",
                 "names of a fenced module"},
                {HEAD ENTRY BEGIN "ld.global.u32 %r3, [%r1]; ret;\n}\n", "the address of ld"},
                {HEAD ENTRY BEGIN "ld.global.u32 %r3, [!%rd1]; ret;\n}\n", "the address of ld"},
                {HEAD ".global .u32 seen;\n" ENTRY BEGIN "ld.global.u32 %r3, [!seen]; ret;\n}\n",
                 "the address of ld"},
                {HEAD ".global .texref t;\n" ENTRY BEGIN "ret;\n}\n", "type \".texref\""},
                {HEAD ENTRY BEGIN "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}]; ret;\n}\n",
                 "textures and surfaces"},
                {HEAD
                 ".extern .func (.param .b64 r) malloc(.param .b64 n);\n" ENTRY BEGIN
                 "{ .param .b64 a; .param .b64 b; st.param.b64 [a], %rd1; call.uni (b), malloc, "
                 "(a); }\nret;\n}\n",
                 "calls malloc(), which cannot be fenced"},
                {HEAD ENTRY BEGIN "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2; "
                                  "ret;\n}\n",
                 "what cp.async.bulk"},
                {"#define ld mov\n" HEAD ENTRY BEGIN "ret;\n}\n", "\"#\" is not expected"},
                {HEAD ENTRY BEGIN "ld .global.u32 %r3, [%rd1]; ret;\n}\n", "\".global\" is"},
                {HEAD ENTRY BEGIN "alloca.u64 %rd2, 16; ret;\n}\n", "line 13: alloca.u64 cannot"},
                {HEAD ENTRY BEGIN "stacksave.u64 %rd2; ret;\n}\n", "stacksave.u64 cannot"},
                {HEAD ENTRY BEGIN "stackrestore.u64 %rd2; ret;\n}\n", "stackrestore.u64 cannot"},
                {HEAD ENTRY BEGIN "ld.global.u32 %r3, [4096+4096]; ret;\n}\n", "\"]\" is expected"},
                {HEAD ".global .u32 seen[4];\n" ENTRY BEGIN "ld.global.u32 %r3, seen[1]; ret;\n}\n",
                 "\";\" is expected"},
                {HEAD ENTRY BEGIN MATRIX("-16"), "what wmma.load"},
                {HEAD ENTRY BEGIN MATRIX("~15"), "what wmma.load"},
                {HEAD ENTRY BEGIN MATRIX("%r2+1000000"), "what wmma.load"},
                {HEAD ENTRY BEGIN MATRIX("!%r2"), "what wmma.load"},
                {HEAD ENTRY BEGIN "T: .branchtargets A;\nbrx.idx %r1+4, T;\nA: ret;\n}\n",
                 "a branch by a table"},
                {HEAD ENTRY BEGIN "T: .branchtargets A;\nbrx.idx !%r1, T;\nA: ret;\n}\n",
                 "a branch by a table"},
                {HEAD ".func f()\n{ ret; }\n" ENTRY BEGIN "call f+16, ();\nret;\n}\n",
                 "what is called is not understood"},
                {HEAD ENTRY BEGIN "P: .callprototype _ ();\ncall %rd1+16, (), P;\nret;\n}\n",
                 "what is called is not understood"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_refused(cases[i].text, cases[i].wanted);
}

/* In each of these the store was code for one reader of comments and strings, and hidden for another. */
static void what_could_be_read_in_two_ways_is_refused(void **state) {
#define HIDDEN "st.global.u32 [%rd2], %r1;"
        static const struct {
                const char *text, *wanted;
        } cases[] = {
                {HEAD ENTRY BEGIN "// a\r" HIDDEN "\nret;\n}\n", "line 13: a carriage return"},
                {HEAD ENTRY BEGIN ".pragma \"a\\\" , \" ; " HIDDEN " //\" ;\nret;\n}\n",
                 "a backslash"},
                {HEAD ENTRY BEGIN ".pragma \"a\n" HIDDEN "\";\nret;\n}\n", "a string of several"},
                {HEAD ENTRY BEGIN "// a \\\n" HIDDEN "\nret;\n}\n", "a backslash"},
                {HEAD ENTRY BEGIN "ret;\n}\n/* " HIDDEN, "without an end"},
                {HEAD ENTRY BEGIN "ret;\n}\n/*/" HIDDEN, "without an end"},
                {HEAD ENTRY BEGIN "/*\v*/ret;\n}\n", "a control character"},
                {HEAD ENTRY BEGIN "ret;\n}\n#line 1\n", "\"#\" is not expected"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_refused(cases[i].text, cases[i].wanted);
}

static void a_comment_ends_behind_both_of_its_marks(void **state) {
        Fenced fenced = rewrite(HEAD ENTRY BEGIN "/*/ // */ " HIDDEN "\nret;\n}\n");

        assert_non_null(strstr(fenced.text, "@%gpuq_fence_p " HIDDEN));
        fenced_finish(&fenced);
}

/* Kernels of all kinds. */
static void the_builtin_kernels_can_be_fenced(void **state) {
        const char *path = getenv("GPUQ_TEST_BUILTIN_PTX");
        _cleanup_(freep) char *text = NULL;
        _cleanup_(fenced_finish) Fenced fenced = {};
        size_t n_text;

        if (!path)
                skip();
        assert_int_equal(backend_read_file(path, &text, &n_text), 0);
        fenced = rewrite(text);
        assert_assembles(&fenced, "sm_90");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_load_outside_gives_zeros_and_a_store_nothing),
                cmocka_unit_test(an_entry_for_one_range_compares_with_one),
                cmocka_unit_test(a_kernel_may_be_declared_before),
                cmocka_unit_test(the_predicate_of_an_instruction_stays_in_force),
                cmocka_unit_test(own_memory_of_threads_and_blocks_costs_nothing),
                cmocka_unit_test(a_generic_address_may_be_of_the_windows_of_the_thread),
                cmocka_unit_test(the_modules_own_variables_are_allowed),
                cmocka_unit_test(both_ends_of_a_matrix_are_compared),
                cmocka_unit_test(the_comparison_is_before_the_guard_of_its_instruction),
                cmocka_unit_test(asynchronous_copies_are_compared_where_they_read),
                cmocka_unit_test(accesses_of_one_address_are_compared_once),
                cmocka_unit_test(accesses_that_follow_each_other_have_one_predicate),
                cmocka_unit_test(what_is_compared_together_is_certain_to_be_reached),
                cmocka_unit_test(all_bytes_and_stores_of_a_span_count_for_variables),
                cmocka_unit_test(any_number_of_accesses_can_be_in_a_run),
                cmocka_unit_test(calls_pass_the_fence_on),
                cmocka_unit_test(a_call_by_pointer_goes_to_functions_of_the_module_alone),
                cmocka_unit_test(a_branch_by_a_table_stays_within_it),
                cmocka_unit_test(a_branch_back_does_not_forget_it),
                cmocka_unit_test(it_is_told_at_the_end_of_a_body_without_ret),
                cmocka_unit_test(it_is_told_before_a_call_that_may_end_the_thread),
                cmocka_unit_test(all_that_is_added_has_names_of_the_fence),
                cmocka_unit_test(a_name_of_the_module_is_not_one_of_a_function_too),
                cmocka_unit_test(names_of_different_functions_may_be_the_same),
                cmocka_unit_test(only_the_modules_own_texts_are_printed),
                cmocka_unit_test(words_of_the_grid_are_for_modules_that_read_where_they_are),
                cmocka_unit_test(what_cannot_be_fenced_is_refused),
                cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
                cmocka_unit_test(a_comment_ends_behind_both_of_its_marks),
                cmocka_unit_test(the_builtin_kernels_can_be_fenced),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
