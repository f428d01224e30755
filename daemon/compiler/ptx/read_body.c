/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a function: instructions, labels, and declarations within.
 *
 * A label may be used before it stands in the text, so operands that are labels are found when the
 * whole body was read. A scope has its own labels; its parents' are found too.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compiler/ptx/reader.h"

#define INSTRUCTIONS_MAX (1u << 24)
#define OPERANDS_MAX     16u
#define FUNCTION_DEPTH   1u /* of the scope that has a function's parameters */

/* ---- labels ---------------------------------------------------------------------- */

/* A text that no other label of the function has. The caller owns nothing: it is the arena's. */
static PtxToken label_key(Reader *reader, uint32_t scope, PtxToken text) {
        _cleanup_(freep) char *key = NULL;
        PtxToken token = {};
        int n;

        n = asprintf(&key, "%u:%.*s", scope, (int)MIN(text.n, INT32_MAX / 2), text.s);
        if (n < 0) {
                key = NULL;
                (void)reader_fail_memory(reader, NULL);
                return token;
        }
        token.s = arena_text(reader->module->arena, key, (size_t)n);
        token.n = reader_fail_memory(reader, token.s) ? 0 : (size_t)n;
        return token;
}

static void add_label(Reader *reader, PtxToken text, const PtxOperand *list) {
        PtxFunction *function = reader_function(reader);
        PtxToken key = label_key(reader, reader->scope, text);
        Name *name;

        if (reader->r)
                return;
        if (names_find(reader->names, key)) {
                reader_fail(reader, "label %.*s is there twice", (int)MIN(text.n, 200), text.s);
                return;
        }
        /* In the function's scope, as all are looked up at its end. */
        name = names_add(reader->names, key, NAME_LABEL, &(Name){.depth = FUNCTION_DEPTH});
        if (reader_fail_memory(reader, name) ||
            !reader_grow(reader, &function->labels, function->n_labels, sizeof(*function->labels)))
                return;

        name->index = function->n_labels;
        function->labels[function->n_labels++] = (PtxLabel){
                .at = function->n_instructions,
                .is_table = list != NULL,
                .list = list ? *list : (PtxOperand){},
        };
}

static const Name *find_label(Reader *reader, uint32_t scope, PtxToken text) {
        for (;;) {
                const Name *name = names_find(reader->names, label_key(reader, scope, text));

                if (name || scope == 0 || reader->r)
                        return name;
                scope = reader->parents[scope];
        }
}

static void resolve_operand(Reader *reader, uint32_t scope, PtxOperand *operand) {
        const Name *name;

        for (size_t i = 0; i < operand->n_elements; i++)
                resolve_operand(reader, scope, &operand->elements[i]);
        if (operand->kind != PTX_SPECIAL || *operand->text.s == '%' || reader->r)
                return;

        name = find_label(reader, scope, operand->text);
        if (!name)
                return;
        operand->index = name->index;
        operand->kind =
                reader_function(reader)->labels[name->index].is_table ? PTX_TABLE : PTX_LABEL;
}

static void resolve_labels(Reader *reader) {
        PtxFunction *function = reader_function(reader);

        for (size_t i = 0; i < function->n_instructions; i++) {
                PtxInstruction *instruction = &function->instructions[i];

                for (size_t k = 0; k < instruction->n_operands; k++)
                        resolve_operand(reader, instruction->scope, &instruction->operands[k]);
        }
        for (size_t i = 0; i < function->n_labels; i++)
                if (function->labels[i].is_table)
                        resolve_operand(reader, (uint32_t)function->labels[i].at,
                                        &function->labels[i].list);
}

/* ---- directives ---------------------------------------------------------------------- */

static void skip_statement(Reader *reader) {
        PtxToken token;

        while ((token = reader_next(reader)).n > 0 && !ptx_token_is(token, ";"))
                ;
}

/* Behind "LABEL:" */
static void read_labelled(Reader *reader, PtxToken text) {
        PtxOperand list = {.kind = PTX_LIST};

        reader->follows = false;
        reader_note_local(reader, text, false);
        if (reader_accept(reader, ".branchtargets")) {
                reader_operands(reader, &list, ";");
                add_label(reader, text, &list);
                if (!reader->r) /* where its labels are looked up */
                        reader_function(reader)->labels[reader_function(reader)->n_labels - 1].at =
                                reader->scope;
        } else if (ptx_token_is(reader_peek(reader), ".callprototype") ||
                   ptx_token_is(reader_peek(reader), ".calltargets")) {
                skip_statement(reader);
        } else {
                add_label(reader, text, NULL);
        }
}

/* ".loc 1 20 3, function_name L1, inlined_at 1 5 2" */
static void read_location(Reader *reader) {
        reader->file = (uint32_t)reader_number(reader);
        reader->file_line = (uint32_t)reader_number(reader);
        (void)reader_number(reader);
        while (reader_accept(reader, ",")) {
                bool is_place = reader_accept(reader, "inlined_at");

                for (unsigned i = 0; is_place && i < 3; i++)
                        (void)reader_number(reader);
                if (is_place)
                        continue;
                reader_expect(reader, "function_name");
                if (!ptx_token_is_name(reader_next(reader)))
                        reader_fail(reader, "a function's name is expected");
                if (reader_accept(reader, "+"))
                        (void)reader_number(reader);
        }
}

static void read_directive(Reader *reader, PtxToken token) {
        if (ptx_token_is(token, ".reg"))
                reader_registers(reader);
        else if (ptx_token_is(token, ".local"))
                reader_variables(reader, PTX_LOCAL, false);
        else if (ptx_token_is(token, ".shared"))
                reader_variables(reader, PTX_SHARED, false);
        else if (ptx_token_is(token, ".param"))
                reader_variables(reader, PTX_PARAM, false);
        else if (ptx_token_is(token, ".global"))
                reader_variables(reader, PTX_GLOBAL, false);
        else if (ptx_token_is(token, ".const"))
                reader_variables(reader, PTX_CONST, false);
        else if (ptx_token_is(token, ".loc"))
                read_location(reader);
        else if (ptx_token_is(token, ".pragma"))
                skip_statement(reader);
        else
                reader_fail(reader, "\"%.*s\" is not expected here", (int)MIN(token.n, 80),
                            token.s);
}

/* ---- instructions ------------------------------------------------------------------------ */

/* "ld.global.L1::evict_last.u32": the tokenizer ends before each colon. */
static PtxToken join_colons(Reader *reader, PtxToken token) {
        for (;;) {
                PtxTokens ahead = reader->tokens;
                PtxToken first = ptx_tokens_next(&ahead), second = ptx_tokens_next(&ahead);

                PtxToken word = ptx_tokens_next(&ahead);

                if (!ptx_token_is(first, ":") || !ptx_token_is(second, ":") ||
                    first.s != token.s + token.n || second.s != first.s + 1 ||
                    word.s != second.s + 1 || word.n == 0 || !isalnum((unsigned char)*word.s))
                        return token;
                for (unsigned i = 0; i < 3; i++)
                        (void)reader_next(reader);
                token.n = (size_t)(word.s + word.n - token.s);
        }
}

static void read_operands(Reader *reader, PtxInstruction *instruction) {
        if (reader_accept(reader, ";"))
                return;

        do {
                PtxOperand operand = reader_operand(reader);

                if (instruction->n_operands == OPERANDS_MAX)
                        reader_fail(reader, "too many operands");
                if (!reader_grow(reader, &instruction->operands, instruction->n_operands,
                                 sizeof(*instruction->operands)))
                        return;
                instruction->operands[instruction->n_operands++] = operand;
        } while (reader_accept(reader, ","));
        reader_expect(reader, ";");
}

static void add_instruction(Reader *reader, const PtxInstruction *instruction) {
        PtxFunction *function = reader_function(reader);

        if (function->n_instructions == INSTRUCTIONS_MAX)
                reader_fail(reader, "too many instructions");
        if (!reader_grow(reader, &function->instructions, function->n_instructions,
                         sizeof(*function->instructions)))
                return;
        function->instructions[function->n_instructions++] = *instruction;
        reader->follows = true;
}

static void read_guard(Reader *reader, PtxInstruction *instruction) {
        instruction->is_guarded = true;
        instruction->guard = reader_operand(reader);
        if (!reader->r && instruction->guard.kind != PTX_REGISTER)
                reader_fail(reader, "\"%.*s\" is no predicate register",
                            (int)MIN(instruction->guard.text.n, 80), instruction->guard.text.s);
}

static void read_instruction(Reader *reader, PtxToken token) {
        PtxInstruction instruction = {
                .begin = token.s,
                .scope = reader->scope,
                .file = reader->file,
                .file_line = reader->file_line,
                .follows = reader->follows,
        };

        if (ptx_token_is(token, "@")) {
                read_guard(reader, &instruction);
                token = reader_next(reader);
        }
        if (!ptx_token_is_name(token)) {
                reader_fail(reader, "an instruction is expected, not \"%.*s\"",
                            (int)MIN(token.n, 80), token.s);
                return;
        }

        token = join_colons(reader, token);
        if (!instruction.is_guarded && reader_accept(reader, ":")) {
                read_labelled(reader, token);
                return;
        }
        instruction.opcode = token;
        instruction.line = reader->line;
        read_operands(reader, &instruction);
        instruction.end = reader->tokens.at;
        add_instruction(reader, &instruction);
}

/* ---- scopes --------------------------------------------------------------------------------- */

static void open_scope(Reader *reader) {
        uint32_t parent = reader->scope;

        if (!names_open(reader->names)) {
                reader_fail(reader, "too many braces within each other");
                return;
        }
        if (!reader_grow(reader, &reader->parents, reader->n_scopes, sizeof(*reader->parents)))
                return;
        reader->scope = reader->n_scopes;
        reader->parents[reader->n_scopes++] = parent;
}

static void close_scope(Reader *reader) {
        names_close(reader->names);
        reader->scope = reader->parents[reader->scope];
}

void reader_body(Reader *reader) {
        unsigned depth = 0;

        reader->parents = NULL;
        reader->scope = reader->n_scopes = 0;
        reader->file = reader->file_line = 0;
        reader->follows = false;
        open_scope(reader);
        for (;;) {
                PtxToken token = reader_next(reader);

                if (token.n == 0) {
                        reader_fail(reader, "the text ends within a function");
                        return;
                }
                if (ptx_token_is(token, "}") && depth == 0) {
                        reader_function(reader)->end = token.s;
                        break;
                }
                if (*token.s == '{' || *token.s == '}' ||
                    (*token.s == '.' && !ptx_token_is(token, ".loc")))
                        reader->follows = false;
                if (ptx_token_is(token, "{")) {
                        open_scope(reader);
                        depth++;
                } else if (ptx_token_is(token, "}")) {
                        close_scope(reader);
                        depth--;
                } else if (ptx_token_starts(token, ".")) {
                        read_directive(reader, token);
                } else if (!ptx_token_is(token, ";")) {
                        read_instruction(reader, token);
                }
        }
        resolve_labels(reader);
        if (!reader->r)
                names_close(reader->names);
}
