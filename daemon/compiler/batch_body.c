/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch body
 *
 * Whether the body of a function does the same in a twin. Most of PTX does. Only code that reads
 * the grid, the module or the parameters can differ. So this file looks for the words that do so,
 * and parses statements only as far as a parameter's use requires.
 */

#include <string.h>

#include "compiler/batch_module.h"
#include "util/grow.h"

typedef struct Body {
        BatchModule *module;
        uint32_t number;
        BatchFunction *function;
        PtxTokens tokens;
        PtxToken token, previous;
        PtxToken opcode; /* of the statement; n is 0 at its start */
} Body;

/* ---- statements --------------------------------------------------------------------- */

/* A .loc ends with its line, everything else with a semicolon. */
static bool is_line_over(const Body *body) {
        const char *end = body->previous.s + body->previous.n;

        return ptx_token_is(body->opcode, ".loc") && memchr(end, '\n', body->token.s - end);
}

static bool is_label(const Body *body) {
        return ptx_token_is(ptx_tokens_peek(&body->tokens), ":") &&
               !ptx_token_has(body->token, ".");
}

static bool is_predicate(const Body *body) {
        return ptx_token_is(body->previous, "@") || ptx_token_is(body->previous, "!");
}

/* Braces at a statement's start are of blocks, others of operands. */
static void follow_statement(Body *body) {
        bool is_word = ptx_token_is_name(body->token) || ptx_token_starts(body->token, ".");

        if (is_line_over(body) || ptx_token_is(body->token, ";"))
                body->opcode.n = 0;
        if (body->opcode.n == 0 && is_word && !is_predicate(body) && !is_label(body))
                body->opcode = body->token;
}

/* ---- obstacles ------------------------------------------------------------------------ */

/* The twin keeps the values of %ctaid.z and %nctaid.z in registers of 32 bits. */
static bool is_answered(const Body *body) {
        return body->function->is_entry &&
               (ptx_token_is(body->token, "%ctaid.z") || ptx_token_is(body->token, "%nctaid.z")) &&
               (ptx_token_ends(body->opcode, ".u32") || ptx_token_ends(body->opcode, ".s32") ||
                ptx_token_ends(body->opcode, ".b32"));
}

static BatchObstacle judge_register(const Body *body) {
        static const char *const harmless[] = {"%ctaid.x", "%ctaid.y", "%nctaid.x", "%nctaid.y"};

        for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
                if (ptx_token_is(body->token, harmless[i]))
                        return BATCH_NONE;

        if (ptx_token_starts(body->token, "%ctaid") || ptx_token_starts(body->token, "%nctaid"))
                return is_answered(body) ? BATCH_NONE : BATCH_GRID;
        if (ptx_token_starts(body->token, "%gridid"))
                return BATCH_GRID;
        if (ptx_token_starts(body->token, "%envreg"))
                return BATCH_COOPERATIVE;
        return BATCH_NONE;
}

/* "barrier.cluster.arrive", "cluster" behind "shared::", "%cluster_ctaid.x"; not a kernel's or label's name. */
static bool is_of_cluster(PtxToken token) {
        if (ptx_token_starts(token, "mapa.") || ptx_token_starts(token, "getctarank."))
                return true;
        return ptx_token_has(token, "cluster") &&
               (ptx_token_has(token, ".") || *token.s == '%' || ptx_token_is(token, "cluster"));
}

static BatchObstacle judge_word(const Body *body) {
        static const struct {
                const char *word;
                BatchObstacle obstacle;
        } words[] = {
                {".global", BATCH_VARIABLE},  {".const", BATCH_VARIABLE},
                {".tex", BATCH_VARIABLE},     {".callprototype", BATCH_CALL},
                {".calltargets", BATCH_CALL}, {".entry", BATCH_UNKNOWN},
                {".func", BATCH_UNKNOWN},     {".section", BATCH_UNKNOWN},
                {".alias", BATCH_UNKNOWN},    {"#", BATCH_UNKNOWN},
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (ptx_token_is(body->token, words[i].word))
                        return words[i].obstacle;

        if (is_of_cluster(body->token))
                return BATCH_CLUSTER;
        if (ptx_token_starts(body->token, "griddepcontrol"))
                return BATCH_COOPERATIVE;
        /* The result is an address like that of other memory, which may be passed anywhere. */
        if (ptx_token_starts(body->token, "cvta.param"))
                return BATCH_PARAMETERS;
        return BATCH_NONE;
}

/* Behind the name in "[name]" and "[name+8]". */
static bool is_address_over(PtxTokens tokens) {
        PtxToken token = ptx_tokens_next(&tokens);
        unsigned long number;

        if (ptx_token_is(token, "]"))
                return true;
        if (!ptx_token_is(token, "+"))
                return false;

        token = ptx_tokens_next(&tokens);
        if (ptx_token_is(token, "-"))
                token = ptx_tokens_next(&tokens);
        return ptx_token_number(token, &number) && ptx_token_is(ptx_tokens_next(&tokens), "]");
}

/* A register with the address can stand for the name in these two places. */
static BatchObstacle judge_parameter(const Body *body) {
        PtxToken opcode = body->opcode;

        if (ptx_token_is(opcode, "ld.param") || ptx_token_starts(opcode, "ld.param."))
                return ptx_token_is(body->previous, "[") && is_address_over(body->tokens)
                               ? BATCH_NONE
                               : BATCH_PARAMETERS;
        if (ptx_token_is(opcode, "mov.b64") || ptx_token_is(opcode, "mov.u64") ||
            ptx_token_is(opcode, "mov.s64"))
                return ptx_token_is(body->previous, ",") &&
                                       ptx_token_is(ptx_tokens_peek(&body->tokens), ";")
                               ? BATCH_NONE
                               : BATCH_PARAMETERS;
        return BATCH_PARAMETERS;
}

/* "r<5>" declares r0 to r4, any of which may hide a parameter; only %r<5> is told apart from one. */
static bool may_hide_parameter(const Body *body) {
        return body->function->is_entry && ptx_token_is(body->token, "<") &&
               ptx_token_is_name(body->previous) && *body->previous.s != '%';
}

static int add_call(Body *body, uint32_t callee) {
        BatchModule *module = body->module;
        int r;

        r = grow(&module->calls, module->n_calls, sizeof(*module->calls));
        if (r < 0)
                return r;

        module->calls[module->n_calls++] = (BatchCall){body->number, callee};
        return 0;
}

/* A name of the outer level, in any place, because a function may be called through its address. */
static int judge_name(Body *body) {
        const BatchSymbol *symbol = batch_module_find(body->module, body->token);

        if (!symbol)
                return 0;
        if (symbol->kind == BATCH_SYMBOL_VARIABLE)
                body->function->obstacle = BATCH_VARIABLE;
        else if (symbol->kind == BATCH_SYMBOL_DECLARED ||
                 body->module->functions[symbol->function].is_entry)
                body->function->obstacle = BATCH_CALL;
        else
                return add_call(body, symbol->function);
        return 0;
}

static int judge_token(Body *body) {
        BatchFunction *function = body->function;

        function->obstacle = judge_word(body);
        if (!function->obstacle)
                function->obstacle = judge_register(body);
        if (!function->obstacle && may_hide_parameter(body))
                function->obstacle = BATCH_PARAMETERS;
        if (function->obstacle || !ptx_token_is_name(body->token))
                return 0;

        if (batch_function_parameter(function, body->token)) {
                function->obstacle = judge_parameter(body);
                return 0;
        }
        return judge_name(body);
}

int batch_body_judge(BatchModule *module, uint32_t i) {
        BatchFunction *function = &module->functions[i];
        Body body = {
                .module = module,
                .number = i,
                .function = function,
                .tokens = {function->body.s, function->body.s + function->body.n},
                .previous = {.s = function->body.s},
                .opcode = {.s = function->body.s},
        };
        int r = 0;

        if (!function->body.n) {
                function->obstacle = BATCH_CALL;
                return 0;
        }
        while (r == 0 && !function->obstacle &&
               (body.token = ptx_tokens_next(&body.tokens)).n > 0) {
                follow_statement(&body);
                r = judge_token(&body);
                body.previous = body.token;
        }
        return r;
}
