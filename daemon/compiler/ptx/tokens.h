/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_TOKENS_H
#define GPUQ_PTX_TOKENS_H

/*
 * PTX tokens
 *
 * PTX as a sequence of words, strings and single marks. A word is an identifier, a register, an
 * instruction with its types, a directive or a number; blanks and comments are skipped. Pure; any
 * bytes are accepted without harm.
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct PtxToken {
        const char *s;
        size_t n; /* 0: the end */
} PtxToken;

typedef struct PtxTokens {
        const char *at;
        const char *end;
} PtxTokens;

/** ptx_tokens_next() - the next one. */
PtxToken ptx_tokens_next(PtxTokens *tokens);
/** ptx_tokens_peek() - the next one, which stays. */
PtxToken ptx_tokens_peek(const PtxTokens *tokens);
/** ptx_tokens_skip() - behind the mark that closes an opening one that was just read. Return: false at the end. */
bool ptx_tokens_skip(PtxTokens *tokens, const char *opening, const char *closing);

/** ptx_token_is() - whether it is that word or mark. */
bool ptx_token_is(PtxToken token, const char *word);
/** ptx_token_starts() - whether it begins so. */
bool ptx_token_starts(PtxToken token, const char *prefix);
/** ptx_token_ends() - whether it ends so. */
bool ptx_token_ends(PtxToken token, const char *suffix);
/** ptx_token_has() - whether that is part of it. */
bool ptx_token_has(PtxToken token, const char *part);
/** ptx_token_same() - whether two read the same. */
bool ptx_token_same(PtxToken a, PtxToken b);
/** ptx_token_is_name() - whether it is an identifier, a register or an instruction. */
bool ptx_token_is_name(PtxToken token);
/** ptx_token_number() - an integer without sign. Return: false if it is none that fits. */
bool ptx_token_number(PtxToken token, unsigned long *ret_number);

/** ptx_first_declaration() - behind .version, .target and .address_size with their values. */
const char *ptx_first_declaration(PtxToken text);
/** ptx_clean() - what is not printable becomes a question mark, as messages go to logs and terminals; NULL is fine. */
void ptx_clean(char *message);

#endif
