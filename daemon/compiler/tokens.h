/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_TOKENS_H
#define GPUQ_COMPILER_TOKENS_H

/*
 * Tokens
 *
 * Preprocessed C++ as a sequence of words, literals and single marks. Blanks and line markers are
 * skipped. Pure; any bytes are accepted without harm.
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct Token {
        const char *s;
        size_t n; /* 0: the end */
} Token;

typedef struct Tokens {
        const char *at;
        const char *start;
        const char *end;
} Tokens;

/** tokens_next() - the next one. */
Token tokens_next(Tokens *tokens);
/** tokens_peek() - the next one, which stays. */
Token tokens_peek(const Tokens *tokens);
/** tokens_skip() - behind the mark that closes an opening one that was just read. Return: false at the end. */
bool tokens_skip(Tokens *tokens, const char *opening, const char *closing);

/** token_is() - whether it is that word or mark. */
bool token_is(Token token, const char *word);
/** token_is_name() - whether it is an identifier or keyword. */
bool token_is_name(Token token);
/** token_is_string() - whether it is a string literal. */
bool token_is_string(Token token);

#endif
