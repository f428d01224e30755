/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX
 *
 * One loop over the outer level. Some directives end with a newline and others with a semicolon,
 * so the loop looks for the few words that it knows and ignores everything else. Bodies in braces
 * are skipped.
 */

#include "compiler/ptx.h"

#include <stdio.h>
#include <string.h>

#include "compiler/device_runtime.h"
#include "compiler/ptx/tokens.h"

#define PARAMETERS_MAX 4096u

typedef struct Scan {
        PtxTokens tokens;
        Signature *signature;
        bool is_extern; /* of the directive being read */
} Scan;

static char kind_of_type(PtxToken type, bool is_pointer) {
        static const struct {
                const char *types;
                char letter;
        } table[] = {
                {".u8 .s8 .b8 ", 'c'}, {".u16 .s16 .b16 .f16 .bf16 ", 's'},
                {".u32 .s32 ", 'i'},   {".f32 ", 'f'},
                {".f64 ", 'd'},        {".u64 .s64 .b64 ", 'w'},
        };
        char word[16];

        if (type.n == 0 || type.n + 2 > sizeof(word))
                return 'b';
        snprintf(word, sizeof(word), "%.*s ", (int)type.n, type.s);

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strstr(table[i].types, word))
                        return table[i].letter == 'w' && is_pointer ? 'p' : table[i].letter;

        /* .b32 may be a float as well, and .texref and its like are no values. */
        return 'b';
}

/* One parameter, after its comma or parenthesis. Return: its letter, or 0 when there is none. */
static char read_parameter(Scan *scan, bool *ret_last) {
        PtxToken type = {}, token;
        bool is_pointer = false, is_shared = false, is_array = false, any = false;

        for (;;) {
                token = ptx_tokens_next(&scan->tokens);
                if (token.n == 0 || ptx_token_is(token, ")") || ptx_token_is(token, ","))
                        break;
                any = true;
                if (ptx_token_is(token, ".ptr"))
                        is_pointer = true;
                else if (is_pointer && ptx_token_is(token, ".shared"))
                        is_shared = true;
                else if (ptx_token_is(token, "["))
                        is_array = true;
                else if (!type.n && ptx_token_starts(token, ".") &&
                         !ptx_token_is(token, ".param") && !ptx_token_is(token, ".align"))
                        type = token;
        }

        *ret_last = !ptx_token_is(token, ",");
        if (!any)
                return 0;
        if (is_shared && !is_array && ptx_token_is(type, ".u64"))
                return scan->signature->is_opencl ? 'm' : 'l';
        return is_array ? 'b' : kind_of_type(type, is_pointer);
}

/* Behind the parameters, whether there is a body, before which directives may stand. */
static bool has_body(PtxTokens tokens) {
        for (;;) {
                PtxToken token = ptx_tokens_next(&tokens);

                if (token.n == 0 || ptx_token_is(token, "{"))
                        return token.n > 0;
                if (ptx_token_is(token, ".pragma"))
                        while (token.n > 0 && !ptx_token_is(token, ";"))
                                token = ptx_tokens_next(&tokens);
                else if (ptx_token_is(token, ";"))
                        return false;
        }
}

static int read_entry(Scan *scan) {
        char kinds[PARAMETERS_MAX + 1];
        PtxToken name = ptx_tokens_next(&scan->tokens);
        const char *before = scan->tokens.at;
        size_t n = 0;
        bool last = false;

        if (!ptx_token_is_name(name))
                return 0;
        if (!ptx_token_is(ptx_tokens_next(&scan->tokens), "(")) {
                scan->tokens.at = before;
                last = true;
        }
        while (!last && n < PARAMETERS_MAX) {
                kinds[n] = read_parameter(scan, &last);
                n += kinds[n] != 0;
        }
        kinds[n] = '\0';
        if (!has_body(scan->tokens))
                return 0; /* a kernel that another one launches is declared before */

        return signature_add_kernel(scan->signature, name.s, name.n, kinds);
}

/* A function's head, to see whether it is printf. */
static void read_function(Scan *scan) {
        for (;;) {
                const char *before = scan->tokens.at;
                PtxToken token = ptx_tokens_next(&scan->tokens);

                if (token.n == 0 || ptx_token_is(token, ";"))
                        return;
                if (ptx_token_is(token, "{")) {
                        scan->tokens.at = before;
                        return;
                }
                if (ptx_token_is(token, "vprintf"))
                        scan->signature->has_printf = true;
        }
}

SignatureVariable ptx_variable(PtxToken name, PtxToken type, PtxTokens behind) {
        SignatureVariable variable = {.name = name.s, .n_name = name.n};
        PtxToken token = ptx_tokens_next(&behind);
        unsigned long n_elements = 1;
        unsigned n_dimensions = 0;

        for (; ptx_token_is(token, "["); n_dimensions++) {
                token = ptx_tokens_next(&behind);
                n_elements = 0;
                if (ptx_token_number(token, &n_elements))
                        token = ptx_tokens_next(&behind);
                if (!ptx_token_is(token, "]"))
                        break;
                token = ptx_tokens_next(&behind);
        }

        variable.is_byte = ptx_token_is(type, ".b8") && n_dimensions == 1 && n_elements == 1;
        variable.has_value = ptx_token_is(token, "=");
        return variable;
}

/* One directive, which may declare several names. */
static int read_variables(Scan *scan) {
        bool skips = scan->is_extern || scan->signature->is_opencl, named = skips;
        SignatureVariable variable;
        PtxToken type = {};
        int r;

        for (;;) {
                PtxToken token = ptx_tokens_next(&scan->tokens);

                if (token.n == 0 || ptx_token_is(token, ";"))
                        return 0;
                if (ptx_token_is(token, "{"))
                        ptx_tokens_skip(&scan->tokens, "{", "}");
                else if (ptx_token_is(token, "("))
                        ptx_tokens_skip(&scan->tokens, "(", ")");
                else if (ptx_token_is(token, ","))
                        named = skips;
                else if (ptx_token_is(token, ".b8"))
                        type = token;
                else if (ptx_token_is_name(token) && !named) {
                        named = true;
                        variable = ptx_variable(token, type, scan->tokens);
                        r = signature_add_variable(scan->signature, &variable);
                        if (r < 0)
                                return r;
                }
        }
}

static int scan_directive(Scan *scan, PtxToken token) {
        if (ptx_token_is(token, ".entry"))
                return read_entry(scan);
        if (ptx_token_is(token, ".global") || ptx_token_is(token, ".const"))
                return read_variables(scan);
        if (ptx_token_is(token, ".func"))
                read_function(scan);
        if (ptx_token_is(token, "{"))
                ptx_tokens_skip(&scan->tokens, "{", "}");
        return 0;
}

static int scan_all(Scan *scan) {
        int r;

        for (;;) {
                PtxToken token = ptx_tokens_next(&scan->tokens);

                if (token.n == 0)
                        return 0;
                if (ptx_token_is(token, ".extern")) {
                        scan->is_extern = true;
                        continue;
                }

                r = scan_directive(scan, token);
                if (r < 0)
                        return r;
                scan->is_extern = false;
        }
}

int ptx_scan(const char *text, size_t n_text, Signature *signature) {
        Scan scan = {.tokens = {text, text + n_text}, .signature = signature};
        _cleanup_(freep) char *call = device_runtime_call(text, n_text);

        signature->has_launches = call != NULL;
        return scan_all(&scan);
}
