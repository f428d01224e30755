/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of PTX: what its objects have, and what it says of text that is wrong.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/ptx/translate.h"

#define HEAD ".version 7.4\n.target sm_80, debug\n.address_size 64\n"

static PtxModule *read_text(const char *text) {
        PtxModule *module = NULL;
        char *error = NULL;
        int r = ptx_module_read(text, strlen(text), &module, &error);

        if (r)
                print_message("%s\n", error ? error : "");
        free(error);
        assert_int_equal(r, 0);
        return module;
}

static void assert_error(const char *text, const char *wanted) {
        _cleanup_(freep) char *error = NULL;
        PtxModule *module = NULL;

        assert_int_equal(ptx_module_read(text, strlen(text), &module, &error), PTX_E_INVALID);
        if (strcmp(error, wanted) != 0)
                print_message("%s\n", error);
        assert_string_equal(error, wanted);
}

static bool every_variable(const PtxVariable *variable) {
        return variable != NULL;
}

static void a_module_has_functions_and_variables(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m = read_text(
                HEAD
                ".file 1 \"a.cu\", 5, 6\n"
                ".visible .global .align 8 .v2 .f32 pair[3] = {{1.5, 0f40000000}, {-1.0, 0}};\n"
                ".global .u64 where = pair+8;\n"
                ".global .b8 rows[2][3] = {{1}, {2, 3}};\n"
                ".extern .shared .align 16 .b8 dynamic[];\n"
                ".section .debug_str { info: .b8 1 }\n"
                ".func (.param .b32 r) f(.param .align 4 .b8 x[12]);\n"
                ".visible .entry k(.param .u64 .ptr .global .align 16 p) .maxntid 256, 1, 1\n"
                "{ ret; }\n");

        assert_int_equal(m->version, 74);
        assert_int_equal(m->target, 80);
        assert_int_equal(m->n_functions, 2);
        assert_false(m->functions[0].is_defined);
        assert_true(m->functions[1].is_entry);
        assert_int_equal(m->functions[1].n_instructions, 1);
        assert_int_equal(m->functions[1].max_threads, 256);
        assert_int_equal(m->functions[1].block[0], 0);
        assert_int_equal(m->variables[0].vector, 2);
        assert_int_equal(ptx_variable_size(&m->variables[0]), 24);
        assert_int_equal(m->variables[0].n_initials, 4);
        assert_int_equal(m->variables[0].initials[2].bits, 0xbf800000);
        assert_true(m->variables[1].initials[0].is_address);
        assert_int_equal(m->variables[1].initials[0].offset, 8);
        assert_int_equal(m->variables[2].n_initials, 6);
        assert_int_equal(m->variables[2].initials[3].bits, 2);
        assert_int_equal(m->variables[3].n_elements, 0);
        assert_true(m->variables[m->functions[1].params[0].index].is_pointer);
}

static void a_kernel_may_say_its_block_size(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m =
                read_text(HEAD ".visible .entry k() .reqntid 32, 2 .minnctapersm 2 { ret; }\n");

        assert_int_equal(m->functions[0].max_threads, 64);
        assert_int_equal(m->functions[0].block[0], 32);
        assert_int_equal(m->functions[0].block[1], 2);
        assert_int_equal(m->functions[0].block[2], 1);
}

static void operands_are_resolved(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m = read_text(
                HEAD ".entry k(.param .u64 p)\n{\n.reg .b32 %r<1000000000>; .reg .pred %q;\n"
                     ".reg .b64 %rd<5>;\n"
                     "  ld.param.u64 %rd1, [p+-8];\n"
                     "@!%q ld.global.L1::evict_last.v2.u32 {%r7, _}, [%rd1+16];\n"
                     "  setp.lt.s32 %q|%q, %r7, -5;\n"
                     "  { .reg.b64 %r7; mov.u64 %r7, 0x10; L: bra L; }\n"
                     "L: bra L;\n"
                     "  ret;\n}\n");
        const PtxFunction *k = &m->functions[0];
        const PtxInstruction *load = &k->instructions[1];

        assert_int_equal(k->n_registers, 4);
        assert_int_equal(k->instructions[0].operands[1].elements[0].kind, PTX_VARIABLE);
        assert_int_equal(k->instructions[0].operands[1].elements[0].offset, -8);
        assert_true(load->is_guarded && load->guard.negated);
        assert_int_equal(load->line, 9);
        assert_true(ptx_token_is(load->opcode, "ld.global.L1::evict_last.v2.u32"));
        assert_int_equal(load->operands[0].kind, PTX_VECTOR);
        assert_int_equal(load->operands[0].elements[1].kind, PTX_SINK);
        assert_int_equal(load->operands[1].elements[0].offset, 16);
        assert_int_equal(k->instructions[2].operands[0].kind, PTX_PAIR);
        assert_int_equal((int64_t)k->instructions[2].operands[2].bits, -5);
        assert_int_equal(k->registers[k->instructions[3].operands[0].index].type, PTX_B64);
        assert_int_equal(k->n_labels, 2);
        assert_int_equal(k->instructions[4].operands[0].index, 0);
        assert_int_equal(k->instructions[5].operands[0].index, 1);
}

static void a_register_may_have_a_part_and_a_sign(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m =
                read_text(HEAD ".entry k()\n{\n.reg .b32 %r<4>, x.b0;\n"
                               "vmad.s32.s32.u32 %r1, -%r2.b3, %r3.h1, - %r2;\n"
                               "add.u32 %r1, x.b0, %r2.b4;\n}\n");
        const PtxOperand *mad = m->functions[0].instructions[0].operands;
        const PtxOperand *add = m->functions[0].instructions[1].operands;

        assert_int_equal(mad[0].part_bits, 0);
        assert_true(mad[1].kind == PTX_REGISTER && mad[1].minus);
        assert_true(mad[1].part_at == 24 && mad[1].part_bits == 8);
        assert_true(mad[2].kind == PTX_REGISTER && !mad[2].minus);
        assert_true(mad[2].part_at == 16 && mad[2].part_bits == 16);
        assert_true(mad[3].minus && mad[3].part_bits == 0);
        assert_int_equal(mad[3].index, mad[1].index);
        /* A name of its own, and no part that there is. */
        assert_true(add[1].kind == PTX_REGISTER && add[1].part_bits == 0);
        assert_int_equal(add[2].kind, PTX_SPECIAL);
        assert_error(HEAD ".entry k()\n{\nadd.u32 %r1, -x, 1;\n}\n",
                     "line 6: \"-x\" is not expected here");
}

static void a_number_may_be_negated_in_three_ways(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m =
                read_text(HEAD ".global .b8 a[4] = {-1, ~1, !7, !0};\n"
                               ".entry k()\n{\n.reg .b64 %rd; .reg .pred %q;\n"
                               "add.s64 %rd, %rd, !4;\nsetp.eq.and.s64 %q, %rd, -4, !%q;\n}\n");
        const PtxInitial *initials = m->variables[0].initials;
        const PtxFunction *k = &m->functions[0];

        assert_int_equal((int64_t)initials[0].bits, -1);
        assert_int_equal((int64_t)initials[1].bits, -2);
        assert_int_equal(initials[2].bits, 0);
        assert_int_equal(initials[3].bits, 1);
        assert_int_equal(k->instructions[0].operands[2].bits, 0);
        assert_false(k->instructions[0].operands[2].negated);
        assert_true(k->instructions[1].operands[3].negated);
}

static void an_instruction_knows_its_line_in_the_source(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m =
                read_text(HEAD ".entry k() {\n ret;\n.loc 1 20 3\n exit;\n"
                               ".loc 2 7 1, function_name x, inlined_at 1 5 2\n trap;\n}\n"
                               ".entry l() { ret; }\n.file 1 \"a.cu\"\n.file 2 \"b.h\", 5, 6\n");
        const PtxInstruction *k = m->functions[0].instructions;

        assert_int_equal(k[0].file, 0);
        assert_int_equal(k[0].file_line, 0);
        assert_int_equal(k[1].file, 1);
        assert_int_equal(k[1].file_line, 20);
        assert_int_equal(k[2].file, 2);
        assert_int_equal(k[2].file_line, 7);
        assert_int_equal(m->functions[1].instructions[0].file_line, 0);
        assert_int_equal(m->n_files, 2);
        assert_int_equal(m->files[1].number, 2);
        assert_true(ptx_token_is(m->files[1].name, "\"b.h\""));
        assert_memory_equal(m->functions[1].body, " ret; }", 7);
}

static void what_is_wrong_is_told_with_its_line(void **state) {
        assert_error("", "line 1: there is no .version, so this is not PTX");
        assert_error(HEAD ".address_size 32\n",
                     "line 4: .address_size is 32, but only 64 is supported");
        assert_error(HEAD "\nnonsense", "line 5: \"nonsense\" is not expected here");
        assert_error(HEAD ".entry k() {\n", "line 4: the text ends within a function");
        assert_error(HEAD ".entry k() {\n add.s32 %r1 %r2; }",
                     "line 5: \";\" is expected, not \"%r2\"");
        assert_error(HEAD ".entry k() { ret; }\n.entry k() { ret; }", "line 5: k is defined twice");
        assert_error(HEAD ".global .u32 a; .global .u32 a;", "line 4: a is declared twice");
        assert_error(HEAD ".global .u32 a[2] = {1, 2, 3};",
                     "line 4: a has more values than elements");
        assert_error(HEAD ".global .u32 a[99999999999];",
                     "line 4: a has a size that is not supported");
        assert_error(HEAD ".global .align 3 .u32 a;",
                     "line 4: .align must be a power of two up to 4096");
        assert_error(HEAD ".global .texref t;", "line 4: type \".texref\" is not supported");
        assert_error(HEAD ".entry k() { mov.u32 a, 0f12; }", "line 4: \"0f12\" is no number");
        assert_error(
                HEAD
                ".entry k() {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{",
                "line 4: too many braces within each other");
        assert_error(HEAD ".entry k() { x [[[[[[[[[[1]]]]]]]]]]; }",
                     "line 4: too many braces within each other");
}

static void what_cannot_run_is_refused_with_its_line(void **state) {
        _cleanup_(ptx_module_freep) PtxModule *m =
                read_text(HEAD ".entry k() {\n.reg .b32 %r<3>;\n.reg .b64 %rd1;\n"
                               "add.s32 %r1, %r2, 1;\nmma.sync %r1;\n}");
        _cleanup_(freep) char *source = NULL, *error = NULL;

        assert_int_equal(ptx_translate(m, every_variable, &source, &error), PTX_E_INVALID);
        assert_string_equal(error, "line 8: the CPU driver cannot run mma.sync; a GPU may run it");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_module_has_functions_and_variables),
                cmocka_unit_test(a_kernel_may_say_its_block_size),
                cmocka_unit_test(operands_are_resolved),
                cmocka_unit_test(a_register_may_have_a_part_and_a_sign),
                cmocka_unit_test(a_number_may_be_negated_in_three_ways),
                cmocka_unit_test(an_instruction_knows_its_line_in_the_source),
                cmocka_unit_test(what_is_wrong_is_told_with_its_line),
                cmocka_unit_test(what_cannot_run_is_refused_with_its_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
