/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands: numbers, names, and what is made of them.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compiler/ptx/reader.h"

#define NUMBER_MAX   80u /* characters */
#define NESTING_MAX  4u  /* operands within operands */
#define ELEMENTS_MAX 65536u

static PtxOperand read_nested(Reader *reader, unsigned depth);

/* ---- numbers ------------------------------------------------------------------ */

bool reader_is_number(PtxToken token) {
        return token.n > 0 && isdigit((unsigned char)*token.s);
}

/* "1.0e" or "1.0E": the tokenizer ends before the sign. */
static PtxToken join_exponent(Reader *reader, PtxToken token) {
        PtxToken sign = reader_peek(reader), digits;
        char last = token.s[token.n - 1];

        if ((last != 'e' && last != 'E') || ptx_token_starts(token, "0x") ||
            ptx_token_starts(token, "0X") || ptx_token_starts(token, "0f") ||
            ptx_token_starts(token, "0F") || ptx_token_starts(token, "0d") ||
            ptx_token_starts(token, "0D") || sign.s != token.s + token.n ||
            !(ptx_token_is(sign, "+") || ptx_token_is(sign, "-")))
                return token;

        (void)reader_next(reader);
        digits = reader_next(reader);
        token.n = (size_t)(digits.s + digits.n - token.s);
        return token;
}

/* Return: whether all of the text is the number. */
static bool parse_bits(const char *text, size_t n_digits, uint64_t *ret_bits) {
        char *end;

        if (strlen(text) != n_digits || !isxdigit((unsigned char)*text))
                return false;
        *ret_bits = strtoull(text, &end, 16);
        return *end == '\0';
}

static bool parse_integer(const char *text, uint64_t *ret_bits) {
        bool is_binary = text[0] == '0' && (text[1] == 'b' || text[1] == 'B');
        char *end;

        errno = 0;
        *ret_bits = is_binary ? strtoull(text + 2, &end, 2) : strtoull(text, &end, 0);
        return errno == 0 && (*end == '\0' || strcmp(end, "U") == 0) && end != text;
}

static bool parse_decimal(const char *text, uint64_t *ret_bits) {
        char *end;
        double value = strtod(text, &end);

        memcpy(ret_bits, &value, sizeof(value));
        return *end == '\0' && strspn(text, "0123456789.eE+-") == strlen(text);
}

PtxOperand reader_literal(Reader *reader, PtxToken token) {
        PtxOperand operand = {.kind = PTX_INTEGER, .text = token};
        char text[NUMBER_MAX];
        bool ok = token.n < sizeof(text);

        snprintf(text, sizeof(text), "%.*s", (int)MIN(token.n, sizeof(text) - 1), token.s);
        if (ptx_token_starts(token, "0f") || ptx_token_starts(token, "0F")) {
                operand.kind = PTX_FLOAT32;
                ok = ok && parse_bits(text + 2, 8, &operand.bits);
        } else if (ptx_token_starts(token, "0d") || ptx_token_starts(token, "0D")) {
                operand.kind = PTX_FLOAT64;
                ok = ok && parse_bits(text + 2, 16, &operand.bits);
        } else if (ok && !parse_integer(text, &operand.bits)) {
                operand.kind = PTX_FLOAT64;
                ok = parse_decimal(text, &operand.bits);
        }
        if (!ok)
                reader_fail(reader, "\"%s\" is no number", text);
        return operand;
}

static void negate(PtxOperand *operand) {
        if (operand->kind == PTX_INTEGER)
                operand->bits = -operand->bits;
        else
                operand->bits ^= operand->kind == PTX_FLOAT32 ? 1ull << 31 : 1ull << 63;
}

static PtxOperand read_number(Reader *reader, PtxToken token) {
        bool is_negative = ptx_token_is(token, "-"), is_inverted = ptx_token_is(token, "~");
        PtxOperand operand;

        if (is_negative || is_inverted)
                token = reader_next(reader);
        if (!reader_is_number(token)) {
                reader_fail(reader, "\"%.*s\" is not expected here", (int)MIN(token.n, 80),
                            token.s);
                return (PtxOperand){};
        }
        operand = reader_literal(reader, join_exponent(reader, token));
        if (is_negative)
                negate(&operand);
        if (is_inverted)
                operand.bits = ~operand.bits;
        return operand;
}

int64_t reader_offset(Reader *reader) {
        int64_t offset = 0;

        for (;;) {
                bool is_negative = ptx_token_is(reader_peek(reader), "-");
                PtxOperand number;

                if (!is_negative && !reader_accept(reader, "+"))
                        return offset;
                number = read_number(reader, reader_next(reader));
                if (number.kind != PTX_INTEGER)
                        reader_fail(reader, "an offset is an integer");
                offset = (int64_t)((uint64_t)offset + number.bits);
        }
}

/* ---- names --------------------------------------------------------------------- */

static const PtxKind kinds[] = {
        [NAME_REGISTER] = PTX_REGISTER,
        [NAME_VARIABLE] = PTX_VARIABLE,
        [NAME_FUNCTION] = PTX_FUNCTION,
};

static PtxOperand register_of_range(Reader *reader, const Name *range, PtxToken text) {
        PtxOperand operand = {.kind = PTX_REGISTER, .text = text};
        Name *name;

        operand.index = reader_add_register(reader, text, range->type);
        name = reader->r ? NULL : names_add(reader->names, text, NAME_REGISTER, range);
        if (!reader_fail_memory(reader, name))
                name->index = operand.index;
        return operand;
}

/* "r.b2" and "r.h1", which is no name of its own. Return: whether it is one. */
static bool take_part(PtxToken *token, uint8_t *ret_at, uint8_t *ret_bits) {
        const char *end = token->s + token->n;

        if (token->n < 4 || end[-3] != '.' || (end[-2] != 'b' && end[-2] != 'h') || end[-1] < '0' ||
            end[-1] > (end[-2] == 'b' ? '3' : '1'))
                return false;
        *ret_bits = end[-2] == 'b' ? 8 : 16;
        *ret_at = (uint8_t)((end[-1] - '0') * *ret_bits);
        token->n -= 3;
        return true;
}

/* Of the names that are known. */
static PtxOperand read_name(Reader *reader, PtxToken token) {
        const Name *name = names_find(reader->names, token);
        const Name *range = names_find_range(reader->names, token);
        PtxOperand operand = {.kind = PTX_SPECIAL, .text = token};

        if (range && reader->in_function && (!name || range->depth > name->depth))
                return register_of_range(reader, range, token);
        if (name) {
                operand.kind = kinds[name->kind];
                operand.index = name->index;
        }
        return operand;
}

/* A word that stands for nothing yet may be a label, which read_body.c looks up at the end. */
static PtxOperand read_word(Reader *reader, PtxToken token) {
        PtxOperand operand = {.kind = PTX_SPECIAL, .text = token}, of_part;
        uint8_t at, bits;

        if (ptx_token_is(token, "_")) {
                operand.kind = PTX_SINK;
                return operand;
        }
        if (ptx_token_is(token, "WARP_SZ")) {
                operand.kind = PTX_INTEGER;
                operand.bits = 32;
                return operand;
        }

        operand = read_name(reader, token);
        if (operand.kind == PTX_SPECIAL && take_part(&token, &at, &bits)) {
                of_part = read_name(reader, token);
                if (of_part.kind == PTX_REGISTER) {
                        of_part.text = operand.text;
                        of_part.part_at = at;
                        of_part.part_bits = bits;
                        return of_part;
                }
        }
        operand.offset = reader_offset(reader);
        return operand;
}

/* ---- what is made of them ---------------------------------------------------------- */

static void read_elements(Reader *reader, PtxOperand *operand, const char *closing,
                          unsigned depth) {
        if (reader_accept(reader, closing))
                return;

        do {
                PtxOperand element = read_nested(reader, depth + 1);

                if (operand->n_elements == ELEMENTS_MAX)
                        reader_fail(reader, "too many operands");
                if (!reader_grow(reader, &operand->elements, operand->n_elements,
                                 sizeof(*operand->elements)))
                        return;
                operand->elements[operand->n_elements++] = element;
        } while (reader_accept(reader, ","));
        reader_expect(reader, closing);
}

/* "-r": the reader does not know which instructions take it. */
static PtxOperand read_minus(Reader *reader, PtxToken token) {
        PtxOperand operand = read_word(reader, token);

        operand.minus = true;
        if (!reader->r && operand.kind != PTX_REGISTER)
                reader_fail(reader, "\"-%.*s\" is not expected here", (int)MIN(token.n, 80),
                            token.s);
        return operand;
}

/* "!4" is a number: 0. */
static PtxOperand invert(PtxOperand operand) {
        if (operand.kind == PTX_INTEGER)
                operand.bits = !operand.bits;
        else
                operand.negated = !operand.negated;
        return operand;
}

static PtxOperand read_single(Reader *reader, unsigned depth) {
        PtxOperand operand = {.text = reader_peek(reader)};
        PtxToken token = reader_next(reader);

        if (depth > NESTING_MAX) {
                reader_fail(reader, "too many braces within each other");
                return operand;
        }
        if (ptx_token_is(token, "!")) {
                operand = invert(read_single(reader, depth + 1));
        } else if (ptx_token_is(token, "{")) {
                operand.kind = PTX_VECTOR;
                read_elements(reader, &operand, "}", depth);
        } else if (ptx_token_is(token, "[")) {
                operand.kind = PTX_ADDRESS;
                read_elements(reader, &operand, "]", depth);
        } else if (ptx_token_is(token, "(")) {
                operand.kind = PTX_LIST;
                read_elements(reader, &operand, ")", depth);
        } else if (ptx_token_is_name(token)) {
                operand = read_word(reader, token);
        } else if (ptx_token_is(token, "-") && ptx_token_is_name(reader_peek(reader))) {
                operand = read_minus(reader, reader_next(reader));
        } else {
                operand = read_number(reader, token);
        }
        return operand;
}

/* "a", or "a|b" */
static PtxOperand read_nested(Reader *reader, unsigned depth) {
        PtxOperand pair = {.kind = PTX_PAIR, .n_elements = 2}, first;

        first = read_single(reader, depth);
        if (!reader_accept(reader, "|"))
                return first;

        pair.text = first.text;
        pair.elements = arena_take(reader->module->arena, 2 * sizeof(*pair.elements));
        if (reader_fail_memory(reader, pair.elements))
                return first;
        pair.elements[0] = first;
        pair.elements[1] = read_single(reader, depth);
        return pair;
}

PtxOperand reader_operand(Reader *reader) {
        return read_nested(reader, 0);
}

void reader_operands(Reader *reader, PtxOperand *operand, const char *closing) {
        read_elements(reader, operand, closing, 0);
}
