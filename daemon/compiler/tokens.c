/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tokens.h"

#include <ctype.h>
#include <string.h>

#include "util/macro.h"

#define RAW_DELIMITER_MAX 16u

static bool is_name_start(char c) {
        return isalpha((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_name_part(char c) {
        return is_name_start(c) || isdigit((unsigned char)c);
}

static void skip_line(Tokens *t) {
        const char *newline = memchr(t->at, '\n', t->end - t->at);

        t->at = newline ? newline + 1 : t->end;
}

static bool at_line_start(const Tokens *t) {
        const char *s = t->at;

        while (s > t->start && (s[-1] == ' ' || s[-1] == '\t'))
                s--;

        return s == t->start || s[-1] == '\n';
}

static void skip_blanks(Tokens *t) {
        while (t->at < t->end) {
                if (*t->at == '#' && at_line_start(t))
                        skip_line(t);
                else if (isspace((unsigned char)*t->at) || *t->at == '\0')
                        t->at++;
                else
                        return;
        }
}

/* "…" or '…', the opening quote being next. A newline ends a broken one. */
static void skip_quoted(Tokens *t) {
        char quote = *t->at++;

        while (t->at < t->end && *t->at != quote && *t->at != '\n')
                t->at += *t->at == '\\' && t->end - t->at > 1 ? 2 : 1;
        if (t->at < t->end)
                t->at++;
}

/* R"x(…)x", its quote being next. */
static void skip_raw(Tokens *t) {
        char closing[RAW_DELIMITER_MAX + 3] = ")";
        const char *s = t->at + 1, *found;
        size_t n = 0;

        while (s + n < t->end && n < RAW_DELIMITER_MAX && s[n] != '(')
                n++;
        memcpy(closing + 1, s, n);
        closing[n + 1] = '"';

        found = memmem(s, t->end - s, closing, n + 2);
        t->at = found ? found + n + 2 : t->end;
}

/* A name, or the prefix of a literal with the literal. */
static void skip_name(Tokens *t) {
        static const char *const prefixes[] = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
        Token name = {.s = t->at};

        while (t->at < t->end && is_name_part(*t->at))
                t->at++;
        if (t->at == t->end || (*t->at != '"' && *t->at != '\''))
                return;

        name.n = t->at - name.s;
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
                if (!token_is(name, prefixes[i]))
                        continue;
                if (name.s[name.n - 1] == 'R')
                        skip_raw(t);
                else
                        skip_quoted(t);
                return;
        }
}

/* 1'000.5e-3f: digit separators are not quotes. */
static void skip_number(Tokens *t) {
        while (t->at < t->end && (is_name_part(*t->at) || *t->at == '.' ||
                                  (*t->at == '\'' && t->end - t->at > 1 && is_name_part(t->at[1]))))
                t->at++;
}

Token tokens_next(Tokens *t) {
        Token token;

        skip_blanks(t);
        token.s = t->at;
        if (t->at == t->end)
                return token = (Token){.s = t->at};

        if (is_name_start(*t->at))
                skip_name(t);
        else if (isdigit((unsigned char)*t->at))
                skip_number(t);
        else if (*t->at == '"' || *t->at == '\'')
                skip_quoted(t);
        else if (t->end - t->at > 1 && t->at[0] == ':' && t->at[1] == ':')
                t->at += 2;
        else
                t->at++;

        t->at = MIN(t->at, t->end);
        token.n = t->at - token.s;
        return token;
}

Token tokens_peek(const Tokens *tokens) {
        Tokens copy = *tokens;

        return tokens_next(&copy);
}

bool tokens_skip(Tokens *tokens, const char *opening, const char *closing) {
        for (unsigned depth = 1; depth > 0;) {
                Token token = tokens_next(tokens);

                if (token.n == 0)
                        return false;
                if (token_is(token, opening))
                        depth++;
                if (token_is(token, closing))
                        depth--;
        }
        return true;
}

bool token_is(Token token, const char *word) {
        return token.n == strlen(word) && memcmp(token.s, word, token.n) == 0;
}

bool token_is_name(Token token) {
        return token.n > 0 && is_name_start(*token.s) && token.s[token.n - 1] != '"' &&
               token.s[token.n - 1] != '\'';
}

bool token_is_string(Token token) {
        return token.n > 1 && token.s[token.n - 1] == '"';
}
