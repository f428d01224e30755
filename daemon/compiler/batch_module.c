/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch module
 *
 * One loop over the outer level, as in ptx.c. Then every body is checked for obstacles, which
 * callers inherit from the functions that they call.
 */

#include "compiler/batch_module.h"

#include <string.h>

#include "compiler/batch.h"
#include "compiler/fence.h"
#include "compiler/ptx.h"
#include "util/grow.h"
#include "util/symbol.h"

#define ALIGN_MAX  16u /* of the table, and so of its rows */
#define CALLS_DEEP 64u /* how far an obstacle is followed against the order of the text */

typedef struct Reader {
        PtxTokens tokens;
        BatchModule *module;
        bool is_64_bit;
        bool is_strange; /* there is something that twins would disturb */
} Reader;

/* ---- parameters ------------------------------------------------------------------ */

typedef struct Declaration {
        PtxToken name, type;
        unsigned long align, n_elements;
        bool is_array;
        bool is_pointer; /* what follows is of what it points to */
        bool is_strange;
} Declaration;

static size_t type_size(PtxToken type) {
        static const struct {
                const char *word;
                size_t size;
        } types[] = {
                {".u8", 1},  {".s8", 1},  {".b8", 1},  {".u16", 2}, {".s16", 2},
                {".b16", 2}, {".f16", 2}, {".u32", 4}, {".s32", 4}, {".b32", 4},
                {".f32", 4}, {".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8},
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (ptx_token_is(type, types[i].word))
                        return types[i].size;

        return 0;
}

static void read_align(Reader *reader, Declaration *declaration) {
        unsigned long align;

        if (!ptx_token_number(ptx_tokens_next(&reader->tokens), &align) || align == 0 ||
            align & (align - 1))
                declaration->is_strange = true;
        else if (!declaration->is_pointer)
                declaration->align = align;
}

static void read_elements(Reader *reader, Declaration *declaration) {
        PtxToken token = ptx_tokens_peek(&reader->tokens);

        if (declaration->is_array || !ptx_token_number(token, &declaration->n_elements)) {
                declaration->is_strange = true;
                return;
        }

        declaration->is_array = true;
        (void)ptx_tokens_next(&reader->tokens);
        if (!ptx_token_is(ptx_tokens_peek(&reader->tokens), "]"))
                declaration->is_strange = true;
        else
                (void)ptx_tokens_next(&reader->tokens);
}

static void read_word(Reader *reader, Declaration *declaration, PtxToken token) {
        if (ptx_token_is(token, ".param"))
                return;
        if (ptx_token_is(token, ".align"))
                read_align(reader, declaration);
        else if (ptx_token_is(token, ".ptr"))
                declaration->is_pointer = true;
        else if (ptx_token_is(token, "["))
                read_elements(reader, declaration);
        else if (ptx_token_starts(token, ".") && declaration->is_pointer)
                return;
        else if (ptx_token_starts(token, ".") && !declaration->type.n)
                declaration->type = token;
        else if (ptx_token_is_name(token) && !declaration->name.n)
                declaration->name = token;
        else
                declaration->is_strange = true;
}

/* One of the list, to behind its comma or the parenthesis. Return: whether there are more. */
static bool read_declaration(Reader *reader, Declaration *ret_declaration) {
        Declaration declaration = {.n_elements = 1};

        for (;;) {
                PtxToken token = ptx_tokens_next(&reader->tokens);

                if (token.n == 0 || ptx_token_is(token, ",") || ptx_token_is(token, ")")) {
                        *ret_declaration = declaration;
                        return ptx_token_is(token, ",");
                }
                read_word(reader, &declaration, token);
        }
}

static int add_parameter(BatchFunction *function, const Declaration *declaration) {
        size_t size = type_size(declaration->type), offset;
        size_t align = declaration->align ? declaration->align : size;
        int r;

        if (declaration->is_strange || !declaration->name.n || !size || align > ALIGN_MAX ||
            declaration->n_elements == 0 || declaration->n_elements > BATCH_TABLE_BYTES ||
            function->n_bytes > BATCH_TABLE_BYTES) {
                function->obstacle = BATCH_PARAMETERS;
                return 0;
        }

        r = grow(&function->parameters, function->n_parameters, sizeof(*function->parameters));
        if (r < 0)
                return r;

        offset = (function->n_bytes + align - 1) / align * align;
        function->parameters[function->n_parameters++] =
                (BatchParameter){declaration->name, offset};
        function->n_bytes = offset + size * declaration->n_elements;
        return 0;
}

static int read_parameters(Reader *reader, BatchFunction *function) {
        Declaration declaration;
        bool more = ptx_token_is(ptx_tokens_peek(&reader->tokens), "(");
        int r;

        if (more)
                (void)ptx_tokens_next(&reader->tokens);
        while (more) {
                more = read_declaration(reader, &declaration);
                r = add_parameter(function, &declaration);
                if (r < 0)
                        return r;
        }

        if (function->n_bytes == 0 || batch_rows(function->n_bytes) < BATCH_ROWS_MIN)
                function->obstacle = BATCH_PARAMETERS;
        return 0;
}

const BatchParameter *batch_function_parameter(const BatchFunction *function, PtxToken name) {
        for (size_t i = 0; i < function->n_parameters; i++)
                if (ptx_token_same(function->parameters[i].name, name))
                        return &function->parameters[i];

        return NULL;
}

/* ---- the outer level --------------------------------------------------------------- */

static int add_symbol(BatchModule *module, BatchSymbol symbol) {
        int r;

        r = grow(&module->symbols, module->n_symbols, sizeof(symbol));
        if (r < 0)
                return r;

        module->symbols[module->n_symbols++] = symbol;
        return 0;
}

/* The names of a directive to its semicolon; what is in braces are values. */
static int read_variables(Reader *reader) {
        SignatureVariable variable;
        PtxToken type = {};

        for (;;) {
                PtxToken token = ptx_tokens_next(&reader->tokens);
                int r;

                if (token.n == 0 || ptx_token_is(token, ";"))
                        return 0;
                if (ptx_token_is(token, "{"))
                        ptx_tokens_skip(&reader->tokens, "{", "}");
                if (ptx_token_is(token, ".b8"))
                        type = token;
                if (!ptx_token_is_name(token))
                        continue;
                variable = ptx_variable(token, type, reader->tokens);
                if (!signature_is_variable(&variable))
                        continue;
                r = add_symbol(reader->module,
                               (BatchSymbol){.name = token, .kind = BATCH_SYMBOL_VARIABLE});
                if (r < 0)
                        return r;
        }
}

/* The name of a .func, behind the parameter that it returns. */
static PtxToken read_func_name(Reader *reader) {
        for (;;) {
                PtxTokens before = reader->tokens;
                PtxToken token = ptx_tokens_next(&reader->tokens);

                if (ptx_token_is_name(token))
                        return token;
                if (ptx_token_is(token, "(")) {
                        ptx_tokens_skip(&reader->tokens, "(", ")");
                } else if (token.n == 0 || ptx_token_is(token, ";") || ptx_token_is(token, "{")) {
                        reader->tokens = before;
                        return (PtxToken){.s = before.at};
                }
        }
}

static void read_body(Reader *reader, BatchFunction *function) {
        const char *start = reader->tokens.at;

        function->directives = function->body = (PtxToken){.s = start}; /* there may be none */
        for (;;) {
                PtxToken token = ptx_tokens_next(&reader->tokens);

                if (token.n == 0 || ptx_token_is(token, ";"))
                        return;
                if (ptx_token_starts(token, ".") && ptx_token_has(token, "cluster"))
                        function->obstacle = BATCH_CLUSTER;
                if (!ptx_token_is(token, "{"))
                        continue;

                function->directives = (PtxToken){start, token.s - start};
                if (ptx_tokens_skip(&reader->tokens, "{", "}"))
                        function->body = (PtxToken){token.s, reader->tokens.at - token.s};
                return;
        }
}

static int read_function(Reader *reader, bool is_entry) {
        BatchModule *module = reader->module;
        BatchFunction function = {.is_entry = is_entry};
        int r = 0;

        function.name = is_entry ? ptx_tokens_peek(&reader->tokens) : read_func_name(reader);
        if (!ptx_token_is_name(function.name)) {
                reader->is_strange = true;
                return 0;
        }
        if (is_entry) {
                (void)ptx_tokens_next(&reader->tokens);
                r = read_parameters(reader, &function);
        }
        read_body(reader, &function);
        if (ptx_token_starts(function.name, SYMBOL_INTERNAL) ||
            fence_is_name(function.name.s, function.name.n))
                function.obstacle = BATCH_INTERNAL;

        if (r == 0)
                r = grow(&module->functions, module->n_functions, sizeof(function));
        if (r < 0) {
                free(function.parameters);
                return r;
        }

        module->functions[module->n_functions++] = function;
        return add_symbol(module, (BatchSymbol){
                                          .name = function.name,
                                          .kind = function.body.n ? BATCH_SYMBOL_DEFINED
                                                                  : BATCH_SYMBOL_DECLARED,
                                          .function = (uint32_t)module->n_functions - 1,
                                  });
}

static int read_directive(Reader *reader, PtxToken token) {
        unsigned long number;

        if (ptx_token_is(token, ".entry") || ptx_token_is(token, ".func"))
                return read_function(reader, ptx_token_is(token, ".entry"));
        if (ptx_token_is(token, ".global") || ptx_token_is(token, ".const") ||
            ptx_token_is(token, ".tex") || ptx_token_is(token, ".alias"))
                return read_variables(reader);

        if (ptx_token_is(token, ".address_size"))
                reader->is_64_bit =
                        ptx_token_number(ptx_tokens_next(&reader->tokens), &number) && number == 64;
        else if (ptx_token_is(token, "{"))
                ptx_tokens_skip(&reader->tokens, "{", "}");
        else if (ptx_token_is(token, ".section"))
                /* Of those with debugging information, only this one names no place in a body. */
                reader->is_strange |= !ptx_token_is(ptx_tokens_peek(&reader->tokens), ".debug_str");
        else if (ptx_token_is(token, "#") || ptx_token_is(token, "@"))
                reader->is_strange = true;
        return 0;
}

static int read_all(Reader *reader) {
        PtxToken token;
        int r;

        while ((token = ptx_tokens_next(&reader->tokens)).n > 0) {
                r = read_directive(reader, token);
                if (r < 0)
                        return r;
        }

        for (size_t i = 0; i < reader->module->n_functions; i++)
                if (reader->is_strange || !reader->is_64_bit)
                        reader->module->functions[i].obstacle = BATCH_UNKNOWN;
        return 0;
}

/* ---- symbols ------------------------------------------------------------------------- */

static int compare_names(PtxToken a, PtxToken b) {
        if (a.n != b.n)
                return a.n < b.n ? -1 : 1;
        return memcmp(a.s, b.s, a.n);
}

static int compare_symbols(const void *a, const void *b) {
        const BatchSymbol *left = a, *right = b;
        int order = compare_names(left->name, right->name);

        return order ? order : (int)left->kind - (int)right->kind;
}

/* The first of those with that name, which are in the order of their kinds. */
const BatchSymbol *batch_module_find(const BatchModule *module, PtxToken name) {
        size_t low = 0, high = module->n_symbols;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare_names(module->symbols[middle].name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == module->n_symbols || !ptx_token_same(module->symbols[low].name, name))
                return NULL;
        return &module->symbols[low];
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Callers inherit obstacles from the functions that they call, until nothing changes. */
static void spread_obstacles(BatchModule *module) {
        bool changed = true;

        for (unsigned pass = 0; changed; pass++) {
                changed = false;
                for (size_t i = 0; i < module->n_calls; i++) {
                        BatchFunction *caller = &module->functions[module->calls[i].caller];
                        const BatchFunction *callee = &module->functions[module->calls[i].callee];

                        if (caller->obstacle || (!callee->obstacle && pass < CALLS_DEEP))
                                continue;
                        caller->obstacle = callee->obstacle ? callee->obstacle : BATCH_UNKNOWN;
                        changed = true;
                }
        }
}

static int judge(BatchModule *module) {
        int r;

        if (module->n_symbols > 0)
                qsort(module->symbols, module->n_symbols, sizeof(*module->symbols),
                      compare_symbols);

        for (size_t i = 0; i < module->n_functions; i++) {
                if (module->functions[i].obstacle)
                        continue;
                r = batch_body_judge(module, (uint32_t)i);
                if (r < 0)
                        return r;
        }
        spread_obstacles(module);
        return 0;
}

int batch_module_new(const char *text, size_t n_text, BatchModule **ret_module) {
        _cleanup_(batch_module_freep) BatchModule *module = NULL;
        Reader reader = {.tokens = {text, text + n_text}};
        int r;

        module = calloc(1, sizeof(*module));
        if (!module)
                return -ENOMEM;

        reader.module = module;
        r = read_all(&reader);
        if (r == 0)
                r = judge(module);
        if (r < 0)
                return r;

        *ret_module = TAKE_PTR(module);
        return 0;
}

BatchModule *batch_module_free(BatchModule *module) {
        if (!module)
                return NULL;

        for (size_t i = 0; i < module->n_functions; i++)
                free(module->functions[i].parameters);
        free(module->functions);
        free(module->symbols);
        free(module->calls);
        free(module);
        return NULL;
}
