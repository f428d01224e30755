/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that the fence and --check begin with: instructions printed anew, for which an assembler has the same code.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/ptx_edit.h"

#define HEAD  ".version 7.4\n.target sm_80\n.address_size 64\n"
#define FIRST HEAD ".global .u32 x;\n.entry k(.param .u64 p)\n{\n"
#define SECOND                                                                                     \
        ".reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<3>;\n.reg .f64 "     \
        "%fd<3>;\n"
#define BEGIN FIRST SECOND

static void edits_finish(PtxEdits *edits) {
        free(edits->error);
        ptx_edits_finish(edits);
}

static void assert_body(const char *body, const char *wanted) {
        _cleanup_(freep) char *text = NULL, *whole = NULL;
        _cleanup_(edits_finish) PtxEdits edits;

        assert_true(asprintf(&text, "%s%s\n}\n", BEGIN, body) > 0);
        assert_true(asprintf(&whole, "%s%s\n}\n", BEGIN, wanted) > 0);
        ptx_edits_init(&edits, (PtxToken){text, strlen(text)}, "fenced", "gpuq_fence");
        if (edits.r)
                fail_msg("%s", edits.error);
        assert_int_equal(edits.text.n, strlen(whole));
        assert_memory_equal(edits.text.s, whole, edits.text.n);
}

static void numbers_are_printed_by_their_bits(void **state) {
        assert_body("mov.u32 %r1, 0x10U;", "mov.u32 %r1, 16;");
        assert_body("mov.u32 %r1, 010;", "mov.u32 %r1, 8;");
        assert_body("mov.u32 %r1, 0b101;", "mov.u32 %r1, 5;");
        assert_body("mov.s32 %r1, -16;", "mov.s32 %r1, -16;");
        assert_body("mov.b32 %r1, ~5;", "mov.b32 %r1, -6;");
        assert_body("mov.u32 %r1, !268435456;", "mov.u32 %r1, 0;");
        assert_body("mov.u32 %r1, WARP_SZ;", "mov.u32 %r1, 32;");
        assert_body("mov.u64 %rd1, 0xffffffffffffffff;", "mov.u64 %rd1, -1;");
        assert_body("mov.f32 %f1, 0F3f800000;", "mov.f32 %f1, 0f3f800000;");
        assert_body("mov.f32 %f1, -0f3f800000;", "mov.f32 %f1, 0fbf800000;");
        assert_body("mov.f64 %fd1, -1.5e+0;", "mov.f64 %fd1, 0dbff8000000000000;");
}

static void names_are_printed_with_their_offsets(void **state) {
        assert_body("ld.global.u32 %r1, [%rd1 + 4+ -8];", "ld.global.u32 %r1, [%rd1+-4];");
        assert_body("ld.global.u32 %r1,[x+0x8];", "ld.global.u32 %r1, [x+8];");
        assert_body("ld.param.u64 %rd1, [p];", "ld.param.u64 %rd1, [p];");
        assert_body("mov.u32 %r1,%tid.x ;", "mov.u32 %r1, %tid.x;");
}

static void operands_are_printed_with_their_marks(void **state) {
        assert_body("ld.global.L1::no_allocate.v2.u32 { %r1,%r2 }, [ %rd1 ] ;",
                    "ld.global.L1::no_allocate.v2.u32 {%r1, %r2}, [%rd1];");
        assert_body("setp.lt.and.u32 %p1|_ , %r1,%r2,!%p2;",
                    "setp.lt.and.u32 %p1|_, %r1, %r2, !%p2;");
        assert_body("mov.u32%r1,5;@%p1 bra%rd1;", "mov.u32 %r1, 5;@%p1 bra %rd1;");
        assert_body("@ !%p1 bra L;\nL:ret ;", "@!%p1 bra L;\nL:ret;");
        assert_body("call (%r1),f , ( %r2, 1 );", "call (%r1), f, (%r2, 1);");
}

static void comments_go_and_lines_stay(void **state) {
        assert_body("@/*@*/ %p1 mov.u32 // one\n\t%r1,\r\n/* ; */ 2;// three\nret;",
                    "@%p1 mov.u32 %r1, 2;\n\n// three\nret;");
}

static void assert_refused(const char *body, const char *wanted) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(edits_finish) PtxEdits edits;

        assert_true(asprintf(&text, "%s%s\n}\n", BEGIN, body) > 0);
        ptx_edits_init(&edits, (PtxToken){text, strlen(text)}, "fenced", "gpuq_fence");
        assert_int_equal(edits.r, PTX_EDIT_E_REFUSED);
        assert_non_null(strstr(edits.error, wanted));
}

static void an_opcode_has_no_comment_within(void **state) {
        assert_refused("ld.global.L1:: /* a\n*/ ; %r1;", "\":\"");
        assert_refused("ld.global.L1::/* */no_allocate.u32 %r1, [%rd1];", "\":\"");
}

static void what_was_printed_is_printed_alike(void **state) {
        _cleanup_(freep) char *text = NULL;
        _cleanup_(edits_finish) PtxEdits first = {}, second = {};
        size_t n;

        assert_int_equal(backend_read_file(getenv("GPUQ_TEST_BUILTIN_PTX"), &text, &n), 0);
        ptx_edits_init(&first, (PtxToken){text, n}, "fenced", "gpuq_fence");
        ptx_edits_init(&second, first.text, "fenced", "gpuq_fence");
        assert_int_equal(second.r, 0);
        assert_int_equal(first.text.n, second.text.n);
        assert_memory_equal(first.text.s, second.text.s, first.text.n);
}

static void write_and_assemble(PtxToken text, const char *ptxas, const char *folder,
                               const char *to) {
        _cleanup_(freep) char *command = NULL, *path = NULL;

        assert_true(asprintf(&path, "%s/a.ptx", folder) > 0);
        assert_int_equal(backend_write_file(path, text.s, text.n), 0);
        assert_true(asprintf(&command, "cd %s && %s -arch=sm_80 -o %s a.ptx", folder, ptxas, to) >
                    0);
        assert_int_equal(system(command), 0);
}

static void the_built_in_kernels_assemble_to_the_same_code(void **state) {
        const char *ptxas = getenv("GPUQ_TEST_PTXAS");
        _cleanup_(freep) char *text = NULL, *command = NULL;
        _cleanup_(edits_finish) PtxEdits edits = {};
        char folder[] = "/tmp/gpuq-edit-XXXXXX";
        size_t n;

        if (!ptxas)
                skip();
        assert_int_equal(backend_read_file(getenv("GPUQ_TEST_BUILTIN_PTX"), &text, &n), 0);
        assert_non_null(mkdtemp(folder));
        ptx_edits_init(&edits, (PtxToken){text, n}, "fenced", "gpuq_fence");
        assert_int_equal(edits.r, 0);
        write_and_assemble((PtxToken){text, n}, ptxas, folder, "as-it-was");
        write_and_assemble(edits.text, ptxas, folder, "anew");
        assert_true(asprintf(&command, "cd %s && cmp as-it-was anew; s=$?; rm -r %s; exit $s",
                             folder, folder) > 0);
        assert_int_equal(system(command), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(numbers_are_printed_by_their_bits),
                cmocka_unit_test(names_are_printed_with_their_offsets),
                cmocka_unit_test(operands_are_printed_with_their_marks),
                cmocka_unit_test(comments_go_and_lines_stay),
                cmocka_unit_test(an_opcode_has_no_comment_within),
                cmocka_unit_test(what_was_printed_is_printed_alike),
                cmocka_unit_test(the_built_in_kernels_assemble_to_the_same_code),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
