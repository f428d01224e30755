/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader
 *
 * The outer level of a module: directives, and the heads of functions.
 */

#include "compiler/ptx/reader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FUNCTIONS_MAX 65536u

/* ---- tokens ------------------------------------------------------------------- */

PtxToken reader_next(Reader *reader) {
        PtxToken token = ptx_tokens_next(&reader->tokens);

        if (token.n == 0)
                return token;
        while (reader->counted < token.s)
                reader->line += *reader->counted++ == '\n';
        return token;
}

PtxToken reader_peek(const Reader *reader) {
        return ptx_tokens_peek(&reader->tokens);
}

bool reader_accept(Reader *reader, const char *word) {
        if (!ptx_token_is(reader_peek(reader), word))
                return false;

        (void)reader_next(reader);
        return true;
}

void reader_expect(Reader *reader, const char *word) {
        PtxToken token = reader_next(reader);

        if (token.n == 0)
                reader_fail(reader, "the text ends where \"%s\" is expected", word);
        else if (!ptx_token_is(token, word))
                reader_fail(reader, "\"%s\" is expected, not \"%.*s\"", word, (int)MIN(token.n, 80),
                            token.s);
}

uint64_t reader_number(Reader *reader) {
        PtxToken token = reader_next(reader);
        unsigned long number = 0;

        if (!ptx_token_number(token, &number))
                reader_fail(reader, "a number is expected, not \"%.*s\"", (int)MIN(token.n, 80),
                            token.s);
        return number;
}

static void reader_stop(Reader *reader, int r) {
        reader->r = r;
        reader->tokens.at = reader->tokens.end;
}

void reader_fail(Reader *reader, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        va_list arguments;
        int n;

        if (reader->r)
                return;

        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (n < 0)
                text = NULL;
        if (n < 0 || asprintf(&reader->error, "line %u: %s", reader->line, text) < 0) {
                reader->error = NULL;
                reader_stop(reader, -ENOMEM);
                return;
        }
        ptx_clean(reader->error);
        reader_stop(reader, PTX_E_INVALID);
}

bool reader_fail_memory(Reader *reader, const void *pointer) {
        if (pointer)
                return false;

        if (!reader->r)
                reader_stop(reader, -ENOMEM);
        return true;
}

bool reader_grow(Reader *reader, void *array, size_t n, size_t size) {
        if (reader->r)
                return false;
        if (arena_grow(reader->module->arena, array, n, size) < 0)
                reader_stop(reader, -ENOMEM);
        return !reader->r;
}

PtxFunction *reader_function(Reader *reader) {
        return &reader->module->functions[reader->function];
}

/* ---- functions ------------------------------------------------------------------ */

static bool add_function(Reader *reader, PtxToken name) {
        PtxModule *module = reader->module;
        Name *known = names_find(reader->names, name);

        if (known && known->kind == NAME_FUNCTION) {
                reader->function = known->index;
                return true;
        }
        if (known || module->n_functions == FUNCTIONS_MAX) {
                reader_fail(reader,
                            known ? "%.*s is declared twice" : "too many functions, from %.*s on",
                            (int)MIN(name.n, 200), name.s);
                return false;
        }

        if (!reader_grow(reader, &module->functions, module->n_functions,
                         sizeof(*module->functions)))
                return false;
        known = names_add(reader->names, name, NAME_FUNCTION, NULL);
        if (reader_fail_memory(reader, known))
                return false;
        known->index = reader->function = module->n_functions;
        module->functions[module->n_functions++] = (PtxFunction){
                .name = name,
                .line = reader->line,
        };
        return true;
}

static bool is_of_cluster(PtxToken token) {
        return ptx_token_is(token, ".reqnctapercluster") ||
               ptx_token_is(token, ".explicitcluster") || ptx_token_is(token, ".maxclusterrank");
}

static uint32_t read_extent(Reader *reader) {
        uint64_t extent = reader_number(reader);

        return (uint32_t)MIN(extent, 1u << 20);
}

/* One to three numbers; what is not there is 1. */
static void read_extents(Reader *reader, uint32_t extents[3]) {
        size_t n = 1;

        extents[0] = read_extent(reader);
        for (; n < 3 && reader_accept(reader, ","); n++)
                extents[n] = read_extent(reader);
        for (; n < 3; n++)
                extents[n] = 1;
}

static void read_block_size(Reader *reader, bool is_exact) {
        PtxFunction *function = reader_function(reader);
        uint32_t extents[3];

        read_extents(reader, extents);
        function->max_threads =
                (uint32_t)MIN((uint64_t)extents[0] * extents[1] * extents[2], 1u << 20);
        if (is_exact)
                memcpy(function->block, extents, sizeof(extents));
}

/* The other directives there say how to run a kernel well, not what it computes. */
static void read_tuning(Reader *reader) {
        for (;;) {
                PtxToken token = reader_peek(reader);

                if (token.n == 0 || ptx_token_is(token, "{") || ptx_token_is(token, ";"))
                        return;
                (void)reader_next(reader);
                if (ptx_token_is(token, ".maxntid") || ptx_token_is(token, ".reqntid"))
                        read_block_size(reader, ptx_token_is(token, ".reqntid"));
                if (is_of_cluster(token))
                        reader_fail(reader, "the CPU driver takes the size of a cluster at the "
                                            "launch only, not "
                                            "from the kernel (__cluster_dims__)");
                if (ptx_token_is(token, ".pragma"))
                        while ((token = reader_next(reader)).n > 0 && !ptx_token_is(token, ";"))
                                ;
        }
}

static void read_body(Reader *reader) {
        PtxFunction *function = reader_function(reader);

        if (function->is_defined) {
                reader_fail(reader, "%.*s is defined twice", (int)MIN(function->name.n, 200),
                            function->name.s);
                return;
        }
        function->is_defined = true;
        function->line = reader->line;
        function->body = reader->tokens.at;
        reader_body(reader);
}

/* Parameters of results come before the name, so they are read before it is known. */
static void read_function(Reader *reader, bool is_entry, bool is_extern) {
        PtxTokens results = {};
        PtxFunction *function, before;
        PtxToken name;

        if (!is_entry && reader_accept(reader, "(")) {
                results = reader->tokens;
                if (!ptx_tokens_skip(&reader->tokens, "(", ")"))
                        reader_fail(reader, "\")\" is missing");
        }
        reader_accept(reader, ".noreturn");
        name = reader_next(reader);
        if (!ptx_token_is_name(name))
                reader_fail(reader, "a name of a function is expected, not \"%.*s\"",
                            (int)MIN(name.n, 80), name.s);
        if (reader->r || !add_function(reader, name))
                return;

        function = reader_function(reader);
        before = *function;
        function->is_entry = is_entry;
        function->is_extern |= is_extern;
        function->n_registers = 0;
        reader->in_function = true;
        (void)names_open(reader->names);
        if (results.at) {
                PtxTokens behind = reader->tokens;

                reader->tokens = results;
                reader_parameters(reader, &function->returns, &function->n_returns);
                if (!reader->r)
                        reader->tokens = behind;
        }
        if (reader_accept(reader, "("))
                reader_parameters(reader, &function->params, &function->n_params);
        read_tuning(reader);
        if (reader_accept(reader, "{"))
                read_body(reader);
        else
                reader_expect(reader, ";");
        /* A declaration behind the definition says nothing new. */
        if (before.is_defined)
                *function = before;
        if (!reader->r)
                names_close(reader->names);
        reader->in_function = false;
}

/* ---- directives ------------------------------------------------------------------- */

/* "7.4" */
static void read_version(Reader *reader) {
        PtxToken token = reader_next(reader);

        if (token.n < 3 || !isdigit((unsigned char)token.s[0]) || token.s[1] != '.' ||
            !isdigit((unsigned char)token.s[2])) {
                reader_fail(reader, "a version such as 7.4 is expected");
                return;
        }
        reader->module->version = (unsigned)(token.s[0] - '0') * 10 + (unsigned)(token.s[2] - '0');
}

static void read_target(Reader *reader) {
        do {
                PtxToken token = reader_next(reader);

                for (size_t i = 3; ptx_token_starts(token, "sm_") && i < token.n && i < 6; i++)
                        if (isdigit((unsigned char)token.s[i]))
                                reader->module->target =
                                        reader->module->target * 10 + (unsigned)(token.s[i] - '0');
        } while (reader_accept(reader, ","));
}

static void read_address_size(Reader *reader) {
        uint64_t bits = reader_number(reader);

        if (bits != 64)
                reader_fail(reader, ".address_size is %llu, but only 64 is supported",
                            (unsigned long long)bits);
}

static void read_file(Reader *reader) {
        PtxModule *module = reader->module;
        PtxFile file = {.number = (uint32_t)reader_number(reader), .name = reader_next(reader)};

        if (reader_grow(reader, &module->files, module->n_files, sizeof(*module->files)))
                module->files[module->n_files++] = file;
        while (reader_accept(reader, ","))
                (void)reader_number(reader);
}

static void skip_section(Reader *reader) {
        (void)reader_next(reader);
        reader_expect(reader, "{");
        if (!reader->r && !ptx_tokens_skip(&reader->tokens, "{", "}"))
                reader_fail(reader, "\"}\" is missing");
}

static PtxSpace space_of(PtxToken token) {
        static const struct {
                const char *name;
                PtxSpace space;
        } spaces[] = {
                {".global", PTX_GLOBAL},
                {".const", PTX_CONST},
                {".shared", PTX_SHARED},
        };

        for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
                if (ptx_token_is(token, spaces[i].name))
                        return spaces[i].space;
        return PTX_GENERIC;
}

static void read_declaration(Reader *reader, PtxToken token) {
        bool is_extern = false;

        for (; ptx_token_is(token, ".extern") || ptx_token_is(token, ".visible") ||
               ptx_token_is(token, ".weak") || ptx_token_is(token, ".common");
             token = reader_next(reader))
                is_extern |= ptx_token_is(token, ".extern");

        if (ptx_token_is(token, ".entry"))
                read_function(reader, true, is_extern);
        else if (ptx_token_is(token, ".func"))
                read_function(reader, false, is_extern);
        else if (space_of(token) != PTX_GENERIC)
                reader_variables(reader, space_of(token), is_extern);
        else
                reader_fail(reader, "\"%.*s\" is not expected here", (int)MIN(token.n, 80),
                            token.s);
}

static void read_directive(Reader *reader, PtxToken token) {
        if (ptx_token_is(token, ".version"))
                read_version(reader);
        else if (ptx_token_is(token, ".target"))
                read_target(reader);
        else if (ptx_token_is(token, ".address_size"))
                read_address_size(reader);
        else if (ptx_token_is(token, ".file"))
                read_file(reader);
        else if (ptx_token_is(token, ".section"))
                skip_section(reader);
        else if (ptx_token_is(token, ".pragma")) {
                (void)reader_next(reader);
                reader_expect(reader, ";");
        } else if (!ptx_token_is(token, ";"))
                read_declaration(reader, token);
}

/* Return: 0, PTX_E_INVALID with an error, or -ENOMEM. */
static int read_module(Reader *reader) {
        PtxToken token;

        while ((token = reader_next(reader)).n > 0)
                read_directive(reader, token);
        if (!reader->r && reader->module->version == 0)
                reader_fail(reader, "there is no .version, so this is not PTX");
        return reader->r;
}

int ptx_module_read(const char *text, size_t n_text, PtxModule **ret_module, char **ret_error) {
        _cleanup_(ptx_module_freep) PtxModule *module = calloc(1, sizeof(*module));
        _cleanup_(names_freep) Names *names = NULL;
        Reader reader = {
                .tokens = {text, text + n_text},
                .counted = text,
                .line = 1,
                .module = module,
        };
        int r;

        if (!module || arena_new(&module->arena) < 0)
                return -ENOMEM;
        r = names_new(module->arena, &names);
        if (r < 0)
                return r;

        reader.names = names;
        r = read_module(&reader);
        if (r) {
                *ret_error = reader.error;
                return r;
        }

        *ret_module = TAKE_PTR(module);
        return 0;
}
