/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence rewrite
 *
 * Whether the memory that a thread accessed was inside is kept in one predicate, and told when the function returns.
 */
#include "compiler/fence_rewrite.h"

#include <string.h>

#include "compiler/fence.h"
#include "compiler/fence_text.h"
#include "util/macro.h"
#include "util/memory_stream.h"

/* ---- instructions -------------------------------------------------------------------------------- */

/* A number behind the table's end would lead anywhere; "%r1+4" would be 4 behind what is limited here. */
static void fence_branch(FenceText *fence, const PtxFunction *function, const PtxInstruction *in) {
        const PtxOperand *index = in->operands;
        FILE *out;

        if (in->n_operands != 2 || in->operands[1].kind != PTX_TABLE ||
            index->kind != PTX_REGISTER || index->negated || index->offset != 0 ||
            function->labels[in->operands[1].index].list.n_elements == 0) {
                ptx_edits_refuse(&fence->edits,
                                 "line %u: a branch by a table that is not understood", in->line);
                return;
        }
        out = ptx_edit(&fence->edits, in->begin, 0);
        fprintf(out, "\n\tmin.u32 %%gpuq_fence_x, %.*s, %zu;\n\t", (int)index->text.n,
                index->text.s, function->labels[in->operands[1].index].list.n_elements - 1);
        fputs("%gpuq_fence_x", ptx_edit(&fence->edits, index->text.s, index->text.n));
}

static void fence_instruction(FenceText *fence, const PtxFunction *function,
                              const PtxInstruction *in) {
        if (ptx_opcode_is(in, "call"))
                fence_call(fence, in);
        else if (ptx_opcode_is(in, "brx"))
                fence_branch(fence, function, in);
        else if (ptx_opcode_is(in, "ret") || ptx_opcode_is(in, "exit"))
                fence_tell(fence, in->begin);
        else
                fence_access(fence, function, in);
}

static bool needs_fence(FenceText *fence, const PtxFunction *function) {
        CheckAccess accesses[CHECK_ACCESSES_MAX];

        for (size_t i = 0; i < function->n_instructions; i++) {
                const PtxInstruction *in = &function->instructions[i];

                if (ptx_opcode_is(in, "call") || ptx_opcode_is(in, "brx") ||
                    fence_find_accesses(fence, function, in, accesses) > 0)
                        return true;
        }
        return false;
}

/* Before any label: a branch back must not forget what was outside. */
static void begin_function(FenceText *fence, const PtxFunction *function) {
        FILE *out = ptx_edit(&fence->edits, function->body, 0);

        fputs("\n\t.reg .pred %gpuq_fence_p, %gpuq_fence_q, %gpuq_fence_g, %gpuq_fence_h, "
              "%gpuq_fence_ok;\n"
              "\t.reg .b64 %gpuq_fence_a, %gpuq_fence_t, %gpuq_fence_s, %gpuq_fence_f, "
              "%gpuq_fence_b0, %gpuq_fence_b1, %gpuq_fence_n0, %gpuq_fence_n1;\n"
              "\t.reg .b32 %gpuq_fence_x, %gpuq_fence_y, %gpuq_fence_w;\n",
              out);
        fence_print_words(out);
        fputs("\tsetp.eq.u64 %gpuq_fence_ok, %gpuq_fence_f, %gpuq_fence_f;\n", out);
}

static void fence_function(FenceText *fence, const PtxFunction *function) {
        if (function->n_instructions == 0 || !needs_fence(fence, function))
                return;
        fence->is_entry = function->is_entry;
        begin_function(fence, function);
        fence_find_spans(fence, function);
        for (size_t i = 0; i < function->n_instructions && !fence->edits.r; i++)
                fence_instruction(fence, function, &function->instructions[i]);
        fence_tell(fence, function->end);
}

/* ---- the module -------------------------------------------------------------------------------------- */

/* Constants are reached by instructions of their own, unless their addresses are made generic. */
static bool is_reached(const FenceText *fence, const PtxVariable *variable) {
        if (ptx_variable_size(variable) == 0)
                return false;
        if (variable->space == PTX_CONST)
                return ptx_token_has(fence->edits.text, "cvta.const") ||
                       ptx_token_has(fence->edits.text, "generic(");
        return variable->space == PTX_GLOBAL;
}

/* The words that the blocks of a cooperative launch meet by; where they are is in two registers. */
static bool is_of_grid_words(const PtxOperand *operand) {
        if (operand->kind == PTX_SPECIAL &&
            (ptx_token_is(operand->text, "%envreg1") || ptx_token_is(operand->text, "%envreg2")))
                return true;
        for (size_t i = 0; i < operand->n_elements; i++)
                if (is_of_grid_words(&operand->elements[i]))
                        return true;
        return false;
}

/* The thread's stack is where the assembler may keep the fence's bounds. */
static bool moves_stack(const PtxInstruction *in) {
        return ptx_opcode_is(in, "alloca") || ptx_opcode_is(in, "stacksave") ||
               ptx_opcode_is(in, "stackrestore");
}

static void look_at_instruction(FenceText *fence, const PtxInstruction *in) {
        if (moves_stack(in))
                ptx_edits_refuse(&fence->edits, "line %u: %.*s cannot be fenced", in->line,
                                 (int)MIN(in->opcode.n, 80), in->opcode.s);
        for (size_t i = 0; i < in->n_operands; i++)
                fence->has_grid_words |= is_of_grid_words(&in->operands[i]);
}

static void look_at_instructions(FenceText *fence) {
        for (size_t i = 0; i < fence->module->n_functions; i++)
                for (size_t k = 0; k < fence->module->functions[i].n_instructions; k++)
                        look_at_instruction(fence, &fence->module->functions[i].instructions[k]);
        fence->has_variables |= fence->has_grid_words;
}

static void look_at_module(FenceText *fence) {
        fence_check_letters(fence);
        fence_check_names(fence);
        ptx_edits_check_variables(&fence->edits);
        for (size_t i = 0; i < fence->module->n_variables; i++)
                fence->has_variables |= is_reached(fence, &fence->module->variables[i]);
        look_at_instructions(fence);
}

static void rewrite(FenceText *fence, FILE *out) {
        const char *end = fence->edits.text.s + fence->edits.text.n;

        look_at_module(fence);
        if (fence->edits.r)
                return;

        fence_functions_declare(
                fence, ptx_edit(&fence->edits, ptx_first_declaration(fence->edits.text), 0));
        fence_add_parameters(fence);
        for (size_t i = 0; i < fence->module->n_functions && !fence->edits.r; i++)
                if (fence->module->functions[i].is_defined)
                        fence_function(fence, &fence->module->functions[i]);
        fputc('\n', ptx_edit(&fence->edits, end, 0));
        fence_functions_define(fence, fence->edits.words);
        ptx_edits_write(&fence->edits, fence->edits.text, out);
}

/* ---- entries for one range --------------------------------------------------------------------------- */

static void add_to_prototypes(FenceText *fence, PtxTokens body) {
        PtxToken token;

        while ((token = ptx_tokens_next(&body)).n > 0)
                if (ptx_token_is(token, ".callprototype"))
                        fence_add_to_prototype(fence, &body);
}

/* Not a declaration, behind which is other text, or that kernel itself. */
static bool is_definition(const PtxFunction *function, PtxTokens tokens) {
        PtxToken token;

        do
                token = ptx_tokens_next(&tokens);
        while (token.n > 0 && !ptx_token_is(token, "{") && !ptx_token_is(token, ".entry") &&
               !ptx_token_is(token, ".func"));
        return tokens.at == function->body;
}

/* Of an entry that accesses memory, from ".entry" to the end of the body. */
static void write_one_range(FenceText *fence, PtxToken entry, PtxTokens *tokens, FILE *out) {
        PtxToken name = ptx_tokens_peek(tokens), token;
        const PtxFunction *function = fence_find_function(fence, name);
        PtxTokens body;

        if (!function || !function->is_defined || !is_definition(function, *tokens) ||
            !needs_fence(fence, function))
                return;
        fputs("\n.visible ", ptx_edit(&fence->edits, entry.s, 0));
        fputs(FENCE_ONE_RANGE, ptx_edit(&fence->edits, name.s + name.n, 0));
        fence_add_parameter(fence, tokens, true);
        fence_function(fence, function);
        while ((token = ptx_tokens_next(tokens)).n > 0 && !ptx_token_is(token, "{"))
                ;
        body.at = tokens->at;
        (void)ptx_tokens_skip(tokens, "{", "}");
        body.end = tokens->at;
        add_to_prototypes(fence, body);
        ptx_edits_write(&fence->edits, (PtxToken){entry.s, (size_t)(tokens->at - entry.s)}, out);
}

static void write_one_ranges(FenceText *fence, FILE *out) {
        PtxTokens tokens = {fence->edits.text.s, fence->edits.text.s + fence->edits.text.n};
        PtxToken token;

        fence->is_one_range = true;
        while ((token = ptx_tokens_next(&tokens)).n > 0 && !fence->edits.r)
                if (ptx_token_is(token, ".entry"))
                        write_one_range(fence, token, &tokens, out);
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

static void rewrite_into(FenceText *fence, Fenced *fenced) {
        FILE *out = memory_stream_open(&fenced->text, &fenced->n_text);

        if (out) {
                rewrite(fence, out);
                write_one_ranges(fence, out);
        }
        if (!out || memory_stream_close(out) < 0)
                ptx_edits_fail_memory(&fence->edits);
}

_Static_assert((int)FENCE_REWRITE_E_REFUSED == (int)PTX_EDIT_E_REFUSED,
               "one is returned as the other");

void fenced_finish(Fenced *fenced) {
        free(fenced->text);
        *fenced = (Fenced){};
}

/* Words that were added where they are part of a comment, say, are missing. */
static void check_result(FenceText *fence, const Fenced *fenced) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *error = NULL;
        int r;

        r = ptx_module_read(fenced->text, fenced->n_text, &module, &error);
        if (r < 0)
                ptx_edits_fail_memory(&fence->edits);
        else if (r)
                ptx_edits_refuse(&fence->edits, "with a fence it is not understood: %s", error);
}

static void fence_text_finish(FenceText *fence) {
        ptx_edits_finish(&fence->edits);
        free(fence->spans);
        free(fence->span_of);
}

int fence_rewrite(const char *text, size_t n_text, Fenced *ret_fenced, char **ret_error) {
        _cleanup_(fence_text_finish) FenceText fence = {};
        Fenced fenced = {};

        ptx_edits_init(&fence.edits, (PtxToken){text, n_text}, "fenced", FENCE_NAME);
        fence.module = fence.edits.module;
        if (!fence.edits.r)
                rewrite_into(&fence, &fenced);
        if (!fence.edits.r)
                check_result(&fence, &fenced);
        if (fence.edits.r) {
                fenced_finish(&fenced);
                *ret_error = fence.edits.error;
                return fence.edits.r;
        }
        *ret_fenced = fenced;
        return 0;
}
