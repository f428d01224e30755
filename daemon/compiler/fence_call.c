/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is passed: kernels and functions take the fence as a parameter, and calls pass it on.
 *
 * Functions take it as their first parameter, so that a call by pointer with other parameters than the function has
 * cannot pass numbers of its own as the fence.
 */
#include <string.h>

#include "compiler/fence.h"
#include "compiler/fence_text.h"
#include "util/macro.h"

#define TARGETS_MAX 256u /* functions that are called by pointer: each is compared */

/* ---- parameters --------------------------------------------------------------------------------- */

static const char parameter[] = ".param .align 8 .b8 gpuq_fence[40]";

_Static_assert(sizeof(Fence) == 40, "as the texts here have it");

const PtxFunction *fence_find_function(const FenceText *fence, PtxToken name) {
        for (size_t i = 0; i < fence->module->n_functions; i++)
                if (ptx_token_same(fence->module->functions[i].name, name))
                        return &fence->module->functions[i];
        return NULL;
}

/* Of a list whose opening parenthesis is next: as its first, or its last. */
static void add_to_list(FenceText *fence, PtxTokens *tokens, const char *words, bool is_last) {
        PtxToken opening = ptx_tokens_next(tokens);
        bool is_empty = ptx_token_is(ptx_tokens_peek(tokens), ")");

        if (!ptx_tokens_skip(tokens, "(", ")"))
                ptx_edits_refuse(&fence->edits, "a list of parameters has no end");
        else if (is_last)
                fprintf(ptx_edit(&fence->edits, tokens->at - 1, 0), "%s%s", is_empty ? "" : ", ",
                        words);
        else
                fprintf(ptx_edit(&fence->edits, opening.s + 1, 0), "%s%s", words,
                        is_empty ? "" : ", ");
}

/* Behind the name that a list may follow. */
static void add_behind(FenceText *fence, PtxTokens *tokens, const char *words, bool is_last) {
        if (ptx_token_is(ptx_tokens_peek(tokens), "("))
                add_to_list(fence, tokens, words, is_last);
        else
                fprintf(ptx_edit(&fence->edits, tokens->at, 0), "(%s)", words);
}

static void skip_returns(PtxTokens *tokens) {
        if (!ptx_token_is(ptx_tokens_peek(tokens), "("))
                return;
        (void)ptx_tokens_next(tokens);
        (void)ptx_tokens_skip(tokens, "(", ")");
}

/* Behind ".entry" or ".func" */
void fence_add_parameter(FenceText *fence, PtxTokens *tokens, bool is_entry) {
        const PtxFunction *function;

        if (!is_entry)
                skip_returns(tokens);
        function = fence_find_function(fence, ptx_tokens_next(tokens));
        if (function && function->is_defined)
                add_behind(fence, tokens, parameter, is_entry);
}

void fence_add_to_prototype(FenceText *fence, PtxTokens *tokens) {
        skip_returns(tokens);
        (void)ptx_tokens_next(tokens); /* _ */
        add_behind(fence, tokens, ".param .align 8 .b8 gpuq_fence_p[40]", false);
}

void fence_add_parameters(FenceText *fence) {
        PtxTokens tokens = {fence->edits.text.s, fence->edits.text.s + fence->edits.text.n};
        PtxToken token;

        while ((token = ptx_tokens_next(&tokens)).n > 0 && !fence->edits.r) {
                if (ptx_token_is(token, ".entry") || ptx_token_is(token, ".func"))
                        fence_add_parameter(fence, &tokens, ptx_token_is(token, ".entry"));
                else if (ptx_token_is(token, ".callprototype"))
                        fence_add_to_prototype(fence, &tokens);
                else if (ptx_token_is(token, ".alias"))
                        ptx_edits_refuse(&fence->edits, "aliases of functions cannot be fenced");
        }
}

/* ---- the words of the fence --------------------------------------------------------------------- */

static const struct {
        const char *name;
        size_t at; /* of the parameter */
} parts_of_fence[] = {
        {"b0", offsetof(Fence, ranges[0].begin)},
        {"n0", offsetof(Fence, ranges[0].n_bytes)},
        {"b1", offsetof(Fence, ranges[1].begin)},
        {"n1", offsetof(Fence, ranges[1].n_bytes)},
        {"f", offsetof(Fence, flag)},
};

static void print_word(FILE *out, size_t i) {
        fprintf(out, "\tld.param.b64 %%gpuq_fence_%s, [gpuq_fence+%zu];\n", parts_of_fence[i].name,
                parts_of_fence[i].at);
}

void fence_print_words(FILE *out) {
        for (size_t i = 0; i < ARRAY_SIZE(parts_of_fence); i++)
                print_word(out, i);
}

void fence_print_word(const FenceText *fence, FILE *out, const char *name) {
        for (size_t i = 0; fence->is_entry && i < ARRAY_SIZE(parts_of_fence); i++)
                if (strcmp(parts_of_fence[i].name, name) == 0)
                        print_word(out, i);
}

void fence_print_bounds(const FenceText *fence, FILE *out) {
        for (size_t i = 0; fence->is_entry && i < (fence->is_one_range ? 2 : 4); i++)
                print_word(out, i);
}

void fence_tell(FenceText *fence, const char *at) {
        FILE *out = ptx_edit(&fence->edits, at, 0);

        fputc('\n', out);
        fence_print_word(fence, out, "f");
        fputs("\t@!%gpuq_fence_ok st.global.u32 [%gpuq_fence_f], 1;\n\t", out);
}

/* ---- calls ------------------------------------------------------------------------------------------ */

static const PtxOperand *target_of(const PtxInstruction *in) {
        size_t i = in->n_operands > 1 && in->operands[0].kind == PTX_LIST ? 1 : 0;

        return i < in->n_operands ? &in->operands[i] : NULL;
}

/* What is called may end the thread, so what was outside is told before. */
static void pass_fence(FenceText *fence, const PtxInstruction *in, const PtxOperand *target) {
        PtxTokens tokens = {target->text.s + target->text.n,
                            fence->edits.text.s + fence->edits.text.n};
        PtxToken comma;
        FILE *out;

        fence_tell(fence, in->begin);
        out = ptx_edit(&fence->edits, in->begin, 0);
        fputs("\n\t{\n\t.param .align 8 .b8 gpuq_fence_c[40];\n", out);
        for (size_t i = 0; i < ARRAY_SIZE(parts_of_fence); i++) {
                fence_print_word(fence, out, parts_of_fence[i].name);
                fprintf(out, "\tst.param.b64 [gpuq_fence_c+%zu], %%gpuq_fence_%s;\n",
                        parts_of_fence[i].at, parts_of_fence[i].name);
        }
        fputc('\t', out);
        comma = ptx_tokens_peek(&tokens);
        if (ptx_token_is(comma, ",")) {
                (void)ptx_tokens_next(&tokens);
                if (ptx_token_is(ptx_tokens_peek(&tokens), "("))
                        add_to_list(fence, &tokens, "gpuq_fence_c", false);
                else
                        fprintf(ptx_edit(&fence->edits, comma.s, 0), ", (gpuq_fence_c)");
        } else {
                fprintf(ptx_edit(&fence->edits, target->text.s + target->text.n, 0),
                        ", (gpuq_fence_c)");
        }
        fputs("\n\t}\n\t", ptx_edit(&fence->edits, in->end, 0));
}

/* Functions that are none of the module. The mathematical ones exist for the CPU driver alone. */
static void call_other(FenceText *fence, const PtxInstruction *in, const PtxOperand *target) {
        static const char *const ours[] = {"vprintf", "__assertfail"};

        if (ptx_token_starts(target->text, "__nv_"))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                if (ptx_token_is(target->text, ours[i])) {
                        fprintf(ptx_edit(&fence->edits, target->text.s, target->text.n),
                                FENCE_NAME "_%s", ours[i][0] == 'v' ? "vprintf" : "assertfail");
                        return;
                }
        ptx_edits_refuse(&fence->edits, "line %u: a kernel calls %.*s(), which cannot be fenced",
                         in->line, (int)MIN(target->text.n, 80), target->text.s);
}

static bool is_in_values(const PtxModule *module, uint32_t function) {
        for (size_t i = 0; i < module->n_variables; i++)
                for (size_t k = 0; k < module->variables[i].n_initials; k++)
                        if (module->variables[i].initials[k].is_function &&
                            module->variables[i].initials[k].index == function)
                                return true;
        return false;
}

static bool is_in_operands(const PtxModule *module, uint32_t index) {
        for (size_t i = 0; i < module->n_functions; i++)
                for (size_t k = 0; k < module->functions[i].n_instructions; k++) {
                        const PtxInstruction *in = &module->functions[i].instructions[k];

                        for (size_t n = 0; n < in->n_operands && !ptx_opcode_is(in, "call"); n++)
                                if (in->operands[n].kind == PTX_FUNCTION &&
                                    in->operands[n].index == index)
                                        return true;
                }
        return false;
}

/* A thread that would go elsewhere, into code without fences, ends. */
static void call_by_pointer(FenceText *fence, const PtxInstruction *in, const PtxOperand *target) {
        FILE *out = ptx_edit(&fence->edits, in->begin, 0);
        size_t n = 0;

        if (fence->module->n_functions > TARGETS_MAX) {
                ptx_edits_refuse(
                        &fence->edits,
                        "calls by pointer in a module of more than %u functions cannot be fenced",
                        TARGETS_MAX);
                return;
        }
        fprintf(out, "\n\tsetp.ne.u64 %%gpuq_fence_p, %%gpuq_fence_b0, %%gpuq_fence_b0;\n");
        for (uint32_t i = 0; i < fence->module->n_functions; i++) {
                const PtxFunction *function = &fence->module->functions[i];

                if (!function->is_defined || function->is_entry ||
                    (!is_in_values(fence->module, i) && !is_in_operands(fence->module, i)))
                        continue;
                fprintf(out,
                        "\tmov.u64 %%gpuq_fence_t, %.*s;\n"
                        "\tsetp.eq.or.u64 %%gpuq_fence_p, %%gpuq_fence_t, %.*s, %%gpuq_fence_p;\n",
                        (int)function->name.n, function->name.s, (int)target->text.n,
                        target->text.s);
                n++;
        }
        if (in->is_guarded)
                fprintf(out,
                        "\t%s.pred %%gpuq_fence_g, %.*s;\n"
                        "\tor.pred %%gpuq_fence_p, %%gpuq_fence_p, %%gpuq_fence_g;\n",
                        in->guard.negated ? "mov" : "not", (int)in->guard.text.n, in->guard.text.s);
        fence_print_exit(fence, out, "%gpuq_fence_p");
        pass_fence(fence, in, target);
}

void fence_call(FenceText *fence, const PtxInstruction *in) {
        const PtxOperand *target = target_of(in);

        if (!target || target->negated || target->offset != 0 ||
            (target->kind != PTX_FUNCTION && target->kind != PTX_REGISTER))
                ptx_edits_refuse(&fence->edits, "line %u: what is called is not understood",
                                 in->line);
        else if (target->kind == PTX_REGISTER)
                call_by_pointer(fence, in, target);
        else if (fence->module->functions[target->index].is_defined)
                pass_fence(fence, in, target);
        else
                call_other(fence, in, target);
}
