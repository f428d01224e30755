/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c) {
        return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* Behind @what, which does not begin before @from. */
static void skip_past(PtxTokens *tokens, const char *from, const char *what) {
        const char *found = memmem(from, tokens->end - from, what, strlen(what));

        tokens->at = found ? found + strlen(what) : tokens->end;
}

static void skip_blanks(PtxTokens *tokens) {
        while (tokens->at < tokens->end) {
                size_t left = tokens->end - tokens->at;

                if (left >= 2 && memcmp(tokens->at, "//", 2) == 0)
                        skip_past(tokens, tokens->at, "\n");
                else if (left >= 2 && memcmp(tokens->at, "/*", 2) == 0)
                        skip_past(tokens, tokens->at + 2, "*/");
                else if (isspace((unsigned char)*tokens->at) || *tokens->at == '\0')
                        tokens->at++;
                else
                        return;
        }
}

PtxToken ptx_tokens_next(PtxTokens *tokens) {
        PtxToken token;

        skip_blanks(tokens);
        token.s = tokens->at;
        if (tokens->at < tokens->end && *tokens->at == '"') {
                skip_past(tokens, tokens->at + 1, "\"");
        } else if (tokens->at < tokens->end && is_word(*tokens->at)) {
                /* A directive ends at the next one: ".reg.b32" is two. So does all before a register: "bra%r1". */
                do
                        tokens->at++;
                while (tokens->at < tokens->end && is_word(*tokens->at) && *tokens->at != '%' &&
                       (*token.s != '.' || *tokens->at != '.'));
        } else if (tokens->at < tokens->end) {
                tokens->at++;
        }
        token.n = tokens->at - token.s;
        return token;
}

PtxToken ptx_tokens_peek(const PtxTokens *tokens) {
        PtxTokens copy = *tokens;

        return ptx_tokens_next(&copy);
}

bool ptx_tokens_skip(PtxTokens *tokens, const char *opening, const char *closing) {
        for (unsigned depth = 1; depth > 0;) {
                PtxToken token = ptx_tokens_next(tokens);

                if (token.n == 0)
                        return false;
                if (ptx_token_is(token, opening))
                        depth++;
                if (ptx_token_is(token, closing))
                        depth--;
        }
        return true;
}

bool ptx_token_is(PtxToken token, const char *word) {
        return token.n == strlen(word) && memcmp(token.s, word, token.n) == 0;
}

bool ptx_token_starts(PtxToken token, const char *prefix) {
        return token.n >= strlen(prefix) && memcmp(token.s, prefix, strlen(prefix)) == 0;
}

bool ptx_token_ends(PtxToken token, const char *suffix) {
        size_t n = strlen(suffix);

        return token.n >= n && memcmp(token.s + token.n - n, suffix, n) == 0;
}

bool ptx_token_has(PtxToken token, const char *part) {
        return memmem(token.s, token.n, part, strlen(part)) != NULL;
}

bool ptx_token_same(PtxToken a, PtxToken b) {
        return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

bool ptx_token_is_name(PtxToken token) {
        return token.n > 0 && is_word(*token.s) && *token.s != '.' &&
               !isdigit((unsigned char)*token.s);
}

bool ptx_token_number(PtxToken token, unsigned long *ret_number) {
        char text[24], *end;
        unsigned long number;

        if (token.n == 0 || token.n >= sizeof(text) || !isdigit((unsigned char)*token.s))
                return false;

        memcpy(text, token.s, token.n);
        text[token.n] = '\0';
        errno = 0;
        number = strtoul(text, &end, 0);
        if (errno || (*end && strcmp(end, "U") != 0))
                return false;

        *ret_number = number;
        return true;
}

const char *ptx_first_declaration(PtxToken text) {
        PtxTokens tokens = {text.s, text.s + text.n};
        PtxToken token;

        while ((token = ptx_tokens_next(&tokens)).n > 0)
                if (*token.s == '.' && token.n > 1 && !isdigit((unsigned char)token.s[1]) &&
                    !ptx_token_is(token, ".version") && !ptx_token_is(token, ".target") &&
                    !ptx_token_is(token, ".address_size"))
                        return token.s;
        return text.s + text.n;
}

void ptx_clean(char *message) {
        for (char *s = message; s && *s; s++)
                if (!isprint((unsigned char)*s))
                        *s = '?';
}
