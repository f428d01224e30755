/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fence rewrite
 *
 * Functions take the fence as their first parameter, so that a call by pointer with other parameters
 * than the function has cannot pass numbers of its own as the fence. Whether the memory that a thread
 * accessed was inside is kept in one predicate, and told when the function returns.
 */
#include "compiler/fence_rewrite.h"

#include <stdarg.h>
#include <string.h>

#include "compiler/fence.h"
#include "compiler/fence_text.h"
#include "util/grow.h"

#define TEXT_MAX      (16u << 20)
#define VARIABLES_MAX 4096u /* of global and constant memory: each is compared */
#define TARGETS_MAX   256u  /* functions that are called by pointer: likewise */

/* ---- edits ------------------------------------------------------------------------------------ */

void fence_refuse(FenceText *fence, const char *format, ...) {
        va_list arguments;

        if (fence->r)
                return;

        fence->r = FENCE_REWRITE_E_REFUSED;
        va_start(arguments, format);
        if (vasprintf(&fence->error, format, arguments) < 0) {
                fence->error = NULL;
                fence->r = -ENOMEM;
        }
        va_end(arguments);
        ptx_clean(fence->error);
}

FILE *fence_edit(FenceText *fence, const char *at, size_t n_removed) {
        if (grow(&fence->edits, fence->n_edits, sizeof(*fence->edits)) < 0)
                fence->r = fence->r ?: -ENOMEM;
        else
                fence->edits[fence->n_edits++] = (FenceEdit){
                        .at = at,
                        .n_removed = n_removed,
                        .begin = (size_t)ftello(fence->words),
                };
        return fence->words;
}

const char *fence_end_of(const FenceText *fence, const PtxInstruction *in) {
        PtxTokens tokens = {in->opcode.s, fence->text.s + fence->text.n};
        PtxToken token;

        while ((token = ptx_tokens_next(&tokens)).n > 0)
                if (ptx_token_is(token, ";"))
                        return token.s + 1;
        return tokens.at;
}

/* They have no order if they are at one place, but for that in which they were made. */
static int compare_edits(const void *a, const void *b) {
        const FenceEdit *x = a, *y = b;

        if (x->at != y->at)
                return x->at < y->at ? -1 : 1;
        return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The words of each, which end where those of the next edit made begin. */
static size_t *find_ends(const FenceText *fence, size_t n_words) {
        size_t *ends = calloc(fence->n_edits + 1, sizeof(*ends));

        for (size_t i = 0; ends && i < fence->n_edits; i++)
                ends[i] = i + 1 < fence->n_edits ? fence->edits[i + 1].begin : n_words;
        return ends;
}

typedef struct Piece {
        FenceEdit edit;
        size_t end;
} Piece;

/* Return: false: edits overlap, as where two functions have one name. */
static bool write_pieces(const FenceText *fence, const Piece *pieces, const char *words,
                         PtxToken part, FILE *out) {
        const char *at = part.s, *end = part.s + part.n;

        for (size_t i = 0; i < fence->n_edits; i++) {
                const Piece *piece = &pieces[i];

                if (piece->edit.at < part.s || piece->edit.at > end ||
                    (piece->edit.at == end && end != fence->text.s + fence->text.n))
                        continue;
                if (piece->edit.at < at)
                        return false;
                fwrite(at, 1, (size_t)(piece->edit.at - at), out);
                fwrite(words + piece->edit.begin, 1, piece->end - piece->edit.begin, out);
                at = piece->edit.at + piece->edit.n_removed;
        }
        if (at > end)
                return false;
        fwrite(at, 1, (size_t)(end - at), out);
        return true;
}

static int write_parts(FenceText *fence, const char *words, size_t n_words, FILE *out) {
        _cleanup_(freep) Piece *pieces = calloc(fence->n_edits + 1, sizeof(*pieces));
        _cleanup_(freep) size_t *ends = find_ends(fence, n_words);

        if (!pieces || !ends)
                return -ENOMEM;
        for (size_t i = 0; i < fence->n_edits; i++)
                pieces[i] = (Piece){fence->edits[i], ends[i]};
        qsort(pieces, fence->n_edits, sizeof(*pieces), compare_edits);
        for (size_t i = 0; i < fence->n_parts; i++)
                if (!write_pieces(fence, pieces, words, fence->parts[i], out))
                        fence_refuse(fence, "its functions are not understood");
        return fence->r;
}

static void add_part(FenceText *fence, PtxToken part) {
        if (grow(&fence->parts, fence->n_parts, sizeof(*fence->parts)) < 0)
                fence->r = fence->r ?: -ENOMEM;
        else
                fence->parts[fence->n_parts++] = part;
}

/* ---- parameters --------------------------------------------------------------------------------- */

static const char parameter[] = ".param .align 8 .b8 gpuq_fence[40]";

_Static_assert(sizeof(Fence) == 40, "as the texts here have it");

static const PtxFunction *find_function(const FenceText *fence, PtxToken name) {
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
                fence_refuse(fence, "a list of parameters has no end");
        else if (is_last)
                fprintf(fence_edit(fence, tokens->at - 1, 0), "%s%s", is_empty ? "" : ", ", words);
        else
                fprintf(fence_edit(fence, opening.s + 1, 0), "%s%s", words, is_empty ? "" : ", ");
}

/* Behind the name that a list may follow. */
static void add_behind(FenceText *fence, PtxTokens *tokens, const char *words, bool is_last) {
        if (ptx_token_is(ptx_tokens_peek(tokens), "("))
                add_to_list(fence, tokens, words, is_last);
        else
                fprintf(fence_edit(fence, tokens->at, 0), "(%s)", words);
}

static void skip_returns(PtxTokens *tokens) {
        if (!ptx_token_is(ptx_tokens_peek(tokens), "("))
                return;
        (void)ptx_tokens_next(tokens);
        (void)ptx_tokens_skip(tokens, "(", ")");
}

/* Behind ".entry" or ".func" */
static void add_parameter(FenceText *fence, PtxTokens *tokens, bool is_entry) {
        const PtxFunction *function;

        if (!is_entry)
                skip_returns(tokens);
        function = find_function(fence, ptx_tokens_next(tokens));
        if (function && function->is_defined)
                add_behind(fence, tokens, parameter, is_entry);
}

static void add_to_prototype(FenceText *fence, PtxTokens *tokens) {
        skip_returns(tokens);
        (void)ptx_tokens_next(tokens); /* _ */
        add_behind(fence, tokens, ".param .align 8 .b8 gpuq_fence_p[40]", false);
}

static void add_parameters(FenceText *fence) {
        PtxTokens tokens = {fence->text.s, fence->text.s + fence->text.n};
        PtxToken token;

        while ((token = ptx_tokens_next(&tokens)).n > 0 && !fence->r) {
                if (ptx_token_is(token, ".entry") || ptx_token_is(token, ".func"))
                        add_parameter(fence, &tokens, ptx_token_is(token, ".entry"));
                else if (ptx_token_is(token, ".callprototype"))
                        add_to_prototype(fence, &tokens);
                else if (ptx_token_is(token, ".alias"))
                        fence_refuse(fence, "aliases of functions cannot be fenced");
        }
}

/* ---- calls ------------------------------------------------------------------------------------------ */

static const PtxOperand *target_of(const PtxInstruction *in) {
        size_t i = in->n_operands > 1 && in->operands[0].kind == PTX_LIST ? 1 : 0;

        return i < in->n_operands ? &in->operands[i] : NULL;
}

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

void fence_print_word(const FenceText *fence, FILE *out, const char *name) {
        for (size_t i = 0; fence->is_entry && i < ARRAY_SIZE(parts_of_fence); i++)
                if (strcmp(parts_of_fence[i].name, name) == 0)
                        print_word(out, i);
}

void fence_print_bounds(const FenceText *fence, FILE *out) {
        for (size_t i = 0; fence->is_entry && i < (fence->is_second ? 2 : 4); i++)
                print_word(out, i);
}

static void tell(FenceText *fence, const char *at) {
        FILE *out = fence_edit(fence, at, 0);

        fputc('\n', out);
        fence_print_word(fence, out, "f");
        fputs("\t@!%gpuq_fence_ok st.global.u32 [%gpuq_fence_f], 1;\n\t", out);
}

/* What is called may end the thread, so what was outside is told before. */
static void pass_fence(FenceText *fence, const PtxInstruction *in, const PtxOperand *target) {
        PtxTokens tokens = {target->text.s + target->text.n, fence->text.s + fence->text.n};
        PtxToken comma;
        FILE *out;

        tell(fence, in->begin);
        out = fence_edit(fence, in->begin, 0);
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
                        fprintf(fence_edit(fence, comma.s, 0), ", (gpuq_fence_c)");
        } else {
                fprintf(fence_edit(fence, target->text.s + target->text.n, 0), ", (gpuq_fence_c)");
        }
        fputs("\n\t}\n\t", fence_edit(fence, fence_end_of(fence, in), 0));
}

/* Functions that are none of the module. The mathematical ones exist for the CPU driver alone. */
static void call_other(FenceText *fence, const PtxInstruction *in, const PtxOperand *target) {
        static const char *const ours[] = {"vprintf", "__assertfail"};

        if (ptx_token_starts(target->text, "__nv_"))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                if (ptx_token_is(target->text, ours[i])) {
                        fprintf(fence_edit(fence, target->text.s, target->text.n), FENCE_NAME "_%s",
                                ours[i][0] == 'v' ? "vprintf" : "assertfail");
                        return;
                }
        fence_refuse(fence, "line %u: a kernel calls %.*s(), which cannot be fenced", in->line,
                     (int)MIN(target->text.n, 80), target->text.s);
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
        FILE *out = fence_edit(fence, in->begin, 0);
        size_t n = 0;

        if (fence->module->n_functions > TARGETS_MAX) {
                fence_refuse(
                        fence,
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

static void fence_call(FenceText *fence, const PtxInstruction *in) {
        const PtxOperand *target = target_of(in);

        if (!target || (target->kind != PTX_FUNCTION && target->kind != PTX_REGISTER))
                fence_refuse(fence, "line %u: what is called is not understood", in->line);
        else if (target->kind == PTX_REGISTER)
                call_by_pointer(fence, in, target);
        else if (fence->module->functions[target->index].is_defined)
                pass_fence(fence, in, target);
        else
                call_other(fence, in, target);
}

/* ---- instructions -------------------------------------------------------------------------------- */

/* A number behind the table's end would lead anywhere. */
static void fence_branch(FenceText *fence, const PtxFunction *function, const PtxInstruction *in) {
        const PtxOperand *index = in->operands;
        FILE *out;

        if (in->n_operands != 2 || in->operands[1].kind != PTX_TABLE ||
            index->kind != PTX_REGISTER ||
            function->labels[in->operands[1].index].list.n_elements == 0) {
                fence_refuse(fence, "line %u: a branch by a table that is not understood",
                             in->line);
                return;
        }
        out = fence_edit(fence, in->begin, 0);
        fprintf(out, "\n\tmin.u32 %%gpuq_fence_x, %.*s, %zu;\n\t", (int)index->text.n,
                index->text.s, function->labels[in->operands[1].index].list.n_elements - 1);
        fputs("%gpuq_fence_x", fence_edit(fence, index->text.s, index->text.n));
}

static void fence_instruction(FenceText *fence, const PtxFunction *function,
                              const PtxInstruction *in) {
        if (ptx_opcode_is(in, "call"))
                fence_call(fence, in);
        else if (ptx_opcode_is(in, "brx"))
                fence_branch(fence, function, in);
        else if (ptx_opcode_is(in, "ret") || ptx_opcode_is(in, "exit"))
                tell(fence, in->begin);
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
        FILE *out = fence_edit(fence, function->body, 0);

        fputs("\n\t.reg .pred %gpuq_fence_p, %gpuq_fence_q, %gpuq_fence_g, %gpuq_fence_h, "
              "%gpuq_fence_ok;\n"
              "\t.reg .b64 %gpuq_fence_a, %gpuq_fence_t, %gpuq_fence_s, %gpuq_fence_f, "
              "%gpuq_fence_b0, %gpuq_fence_b1, %gpuq_fence_n0, %gpuq_fence_n1;\n"
              "\t.reg .b32 %gpuq_fence_x, %gpuq_fence_y, %gpuq_fence_w;\n",
              out);
        for (size_t i = 0; i < ARRAY_SIZE(parts_of_fence); i++)
                print_word(out, i);
        fputs("\tsetp.eq.u64 %gpuq_fence_ok, %gpuq_fence_f, %gpuq_fence_f;\n", out);
}

static void fence_function(FenceText *fence, const PtxFunction *function) {
        if (function->n_instructions == 0 || !needs_fence(fence, function))
                return;
        fence->is_entry = function->is_entry;
        begin_function(fence, function);
        fence_find_spans(fence, function);
        for (size_t i = 0; i < function->n_instructions && !fence->r; i++)
                fence_instruction(fence, function, &function->instructions[i]);
        tell(fence, function->end);
}

/* ---- the module -------------------------------------------------------------------------------------- */

/* Constants are reached by instructions of their own, unless their addresses are made generic. */
static bool is_reached(const FenceText *fence, const PtxVariable *variable) {
        if (ptx_variable_size(variable) == 0)
                return false;
        if (variable->space == PTX_CONST)
                return ptx_token_has(fence->text, "cvta.const") ||
                       ptx_token_has(fence->text, "generic(");
        return variable->space == PTX_GLOBAL;
}

static void look_at_variables(FenceText *fence) {
        size_t n = 0;

        for (size_t i = 0; i < fence->module->n_variables; i++) {
                const PtxVariable *variable = &fence->module->variables[i];

                if (variable->space != PTX_GLOBAL && variable->space != PTX_CONST)
                        continue;
                if (variable->in_function)
                        fence_refuse(fence,
                                     "variable %.*s is declared in a function, so accesses "
                                     "of it cannot be fenced",
                                     (int)MIN(variable->name.n, 200), variable->name.s);
                fence->has_variables |= is_reached(fence, variable);
                n++;
        }
        if (n > VARIABLES_MAX)
                fence_refuse(fence, "the module has %zu variables; a fenced one may have %u", n,
                             VARIABLES_MAX);
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
                fence_refuse(fence, "line %u: %.*s cannot be fenced", in->line,
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
        if (ptx_token_has(fence->text, FENCE_NAME))
                fence_refuse(fence, "names of a fenced module must not contain " FENCE_NAME);
        fence_check_letters(fence);
        fence_check_names(fence);
        look_at_variables(fence);
        look_at_instructions(fence);
}

static void rewrite(FenceText *fence) {
        const char *end = fence->text.s + fence->text.n;

        look_at_module(fence);
        if (fence->r)
                return;

        fence_functions_declare(fence, fence_edit(fence, ptx_first_declaration(fence->text), 0));
        add_parameters(fence);
        for (size_t i = 0; i < fence->module->n_functions && !fence->r; i++)
                if (fence->module->functions[i].is_defined)
                        fence_function(fence, &fence->module->functions[i]);
        fputc('\n', fence_edit(fence, end, 0));
        fence_functions_define(fence, fence->words);
        add_part(fence, fence->text);
}

/* ---- second entries ---------------------------------------------------------------------------------- */

static void add_to_prototypes(FenceText *fence, PtxTokens body) {
        PtxToken token;

        while ((token = ptx_tokens_next(&body)).n > 0)
                if (ptx_token_is(token, ".callprototype"))
                        add_to_prototype(fence, &body);
}

/* Of an entry that accesses memory: from ".entry" to the end of the body. */
static void add_second(FenceText *fence, PtxToken entry, PtxTokens *tokens) {
        PtxToken name = ptx_tokens_next(tokens), token;
        const PtxFunction *function = find_function(fence, name);
        PtxTokens body;

        if (!function || !function->is_defined || !needs_fence(fence, function))
                return;
        fputs("\n.visible ", fence_edit(fence, entry.s, 0));
        fputs(FENCE_SUFFIX, fence_edit(fence, name.s + name.n, 0));
        add_behind(fence, tokens, parameter, true);
        fence_function(fence, function);
        while ((token = ptx_tokens_next(tokens)).n > 0 && !ptx_token_is(token, "{"))
                ;
        body.at = tokens->at;
        (void)ptx_tokens_skip(tokens, "{", "}");
        body.end = tokens->at;
        add_to_prototypes(fence, body);
        add_part(fence, (PtxToken){entry.s, (size_t)(tokens->at - entry.s)});
}

static void add_seconds(FenceText *fence) {
        PtxTokens tokens = {fence->text.s, fence->text.s + fence->text.n};
        PtxToken token;

        while ((token = ptx_tokens_next(&tokens)).n > 0 && !fence->r)
                if (ptx_token_is(token, ".entry"))
                        add_second(fence, token, &tokens);
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

static int write_edited(FenceText *fence, void (*edit)(FenceText *fence), FILE *out) {
        _cleanup_(freep) char *words = NULL;
        size_t n_words = 0;

        fence->words = open_memstream(&words, &n_words);
        if (!fence->words)
                return -ENOMEM;
        edit(fence);
        if (fclose(fence->words) != 0 && !fence->r)
                fence->r = -ENOMEM;
        return fence->r ?: write_parts(fence, words, n_words, out);
}

static void forget_edits(FenceText *fence) {
        free(fence->edits);
        free(fence->parts);
        free(fence->spans);
        free(fence->span_of);
        fence->edits = NULL;
        fence->parts = NULL;
        fence->spans = NULL;
        fence->span_of = NULL;
        fence->n_edits = fence->n_parts = fence->n_spans = 0;
}

static int rewrite_into(FenceText *fence, Fenced *fenced) {
        FILE *out = open_memstream(&fenced->text, &fenced->n_text);

        if (!out)
                return -ENOMEM;
        fence->r = write_edited(fence, rewrite, out);
        forget_edits(fence);
        fence->is_second = true;
        if (!fence->r)
                fence->r = write_edited(fence, add_seconds, out);
        forget_edits(fence);
        if (fclose(out) != 0 && !fence->r)
                fence->r = -ENOMEM;
        return fence->r;
}

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
                fence->r = r;
        else if (r)
                fence_refuse(fence, "with a fence it is not understood: %s", error);
}

int fence_rewrite(const char *text, size_t n_text, Fenced *ret_fenced, char **ret_error) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        FenceText fence = {.text = {text, n_text}};
        Fenced fenced = {};
        int r;

        if (n_text > TEXT_MAX) {
                *ret_error = strdup("the PTX is too large to be fenced: the limit is 16 MiB");
                return *ret_error ? FENCE_REWRITE_E_REFUSED : -ENOMEM;
        }
        r = ptx_module_read(text, n_text, &module, ret_error);
        if (r)
                return r < 0 ? r : FENCE_REWRITE_E_REFUSED;

        fence.module = module;
        r = rewrite_into(&fence, &fenced);
        if (r == 0)
                check_result(&fence, &fenced);
        if (fence.r) {
                fenced_finish(&fenced);
                *ret_error = fence.error;
                return fence.r;
        }
        *ret_fenced = fenced;
        return 0;
}
