/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX
 *
 * Tokens, and one loop over the outer level. Some directives end with a newline
 * and others with a semicolon, so the loop looks for the few words it knows and
 * lets everything else pass; bodies in braces are skipped whole.
 */

#include "compiler/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define PARAMETERS_MAX 4096u

typedef struct Token {
        const char *s;
        size_t n; /* 0: the end */
} Token;

typedef struct Scan {
        const char *at;
        const char *end;
        Signature *signature;
        bool is_extern; /* of the directive being read */
} Scan;

static bool is_word(char c) {
        return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

static void skip_past(Scan *scan, const char *what) {
        const char *found = memmem(scan->at, scan->end - scan->at, what, strlen(what));

        scan->at = found ? found + strlen(what) : scan->end;
}

static void skip_blanks(Scan *scan) {
        while (scan->at < scan->end) {
                size_t left = scan->end - scan->at;

                if (left >= 2 && memcmp(scan->at, "//", 2) == 0)
                        skip_past(scan, "\n");
                else if (left >= 2 && memcmp(scan->at, "/*", 2) == 0)
                        skip_past(scan, "*/");
                else if (isspace((unsigned char)*scan->at) || *scan->at == '\0')
                        scan->at++;
                else
                        return;
        }
}

static Token next(Scan *scan) {
        Token token;

        skip_blanks(scan);
        token.s = scan->at;
        if (scan->at < scan->end && *scan->at == '"') {
                scan->at++;
                skip_past(scan, "\"");
        } else if (scan->at < scan->end && is_word(*scan->at)) {
                while (scan->at < scan->end && is_word(*scan->at))
                        scan->at++;
        } else if (scan->at < scan->end) {
                scan->at++;
        }
        token.n = scan->at - token.s;
        return token;
}

static bool is(Token token, const char *word) {
        return token.n == strlen(word) && memcmp(token.s, word, token.n) == 0;
}

static bool starts(Token token, const char *prefix) {
        return token.n >= strlen(prefix) && memcmp(token.s, prefix, strlen(prefix)) == 0;
}

static bool is_name(Token token) {
        return token.n > 0 && is_word(*token.s) && *token.s != '.' &&
               !isdigit((unsigned char)*token.s);
}

/* After an opening brace or bracket: to behind the one that closes it. */
static void skip_balanced(Scan *scan, const char *opening, const char *closing) {
        unsigned depth = 1;

        while (depth > 0) {
                Token token = next(scan);

                if (token.n == 0)
                        return;
                if (is(token, opening))
                        depth++;
                if (is(token, closing))
                        depth--;
        }
}

static char kind_of_type(Token type, bool is_pointer) {
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
        Token type = {}, token;
        bool is_pointer = false, is_array = false, any = false;

        for (;;) {
                token = next(scan);
                if (token.n == 0 || is(token, ")") || is(token, ","))
                        break;
                any = true;
                if (is(token, ".ptr"))
                        is_pointer = true;
                else if (is(token, "["))
                        is_array = true;
                else if (!type.n && starts(token, ".") && !is(token, ".param") &&
                         !is(token, ".align"))
                        type = token;
        }

        *ret_last = !is(token, ",");
        if (!any)
                return 0;
        return is_array ? 'b' : kind_of_type(type, is_pointer);
}

static int read_entry(Scan *scan) {
        char kinds[PARAMETERS_MAX + 1];
        Token name = next(scan);
        const char *before = scan->at;
        size_t n = 0;
        bool last = false;

        if (!is_name(name))
                return 0;
        if (!is(next(scan), "(")) {
                scan->at = before;
                last = true;
        }
        while (!last && n < PARAMETERS_MAX) {
                kinds[n] = read_parameter(scan, &last);
                n += kinds[n] != 0;
        }
        kinds[n] = '\0';

        return signature_add_kernel(scan->signature, name.s, name.n, kinds);
}

/* A function's head, to see whether it is printf. */
static void read_function(Scan *scan) {
        for (;;) {
                const char *before = scan->at;
                Token token = next(scan);

                if (token.n == 0 || is(token, ";"))
                        return;
                if (is(token, "{")) {
                        scan->at = before;
                        return;
                }
                if (is(token, "vprintf"))
                        scan->signature->has_printf = true;
        }
}

/* One directive, which may declare several names. */
static int read_variables(Scan *scan) {
        bool named = scan->is_extern;
        int r;

        for (;;) {
                Token token = next(scan);

                if (token.n == 0 || is(token, ";"))
                        return 0;
                if (is(token, "{"))
                        skip_balanced(scan, "{", "}");
                else if (is(token, "("))
                        skip_balanced(scan, "(", ")");
                else if (is(token, ","))
                        named = scan->is_extern;
                else if (is_name(token) && !named) {
                        named = true;
                        r = signature_add_variable(scan->signature, token.s, token.n);
                        if (r < 0)
                                return r;
                }
        }
}

static int scan_directive(Scan *scan, Token token) {
        if (is(token, ".entry"))
                return read_entry(scan);
        if (is(token, ".global") || is(token, ".const"))
                return read_variables(scan);
        if (is(token, ".func"))
                read_function(scan);
        if (is(token, "{"))
                skip_balanced(scan, "{", "}");
        return 0;
}

static int scan_all(Scan *scan) {
        int r;

        for (;;) {
                Token token = next(scan);

                if (token.n == 0)
                        return 0;
                if (is(token, ".extern")) {
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
        Scan scan = {.at = text, .end = text + n_text, .signature = signature};

        return scan_all(&scan);
}
