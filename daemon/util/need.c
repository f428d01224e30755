/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Need
 */
#include "util/need.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

/* A part of the text, which is not changed. */
typedef struct Word {
        const char *p;
        size_t n;
} Word;

/* The part before a delimiter; @rest is what follows it, or empty. */
static Word word_cut(Word *rest, char delimiter) {
        const char *found = memchr(rest->p, delimiter, rest->n);
        Word word = {rest->p, found ? (size_t)(found - rest->p) : rest->n};
        size_t n_gone = word.n + (found ? 1 : 0);

        rest->p += n_gone;
        rest->n -= n_gone;
        return word;
}

static bool word_is(Word word, const char *text) {
        return word.n == strlen(text) && memcmp(word.p, text, word.n) == 0;
}

static Word need_arguments(const char *text) {
        const char *line = strchr(text, '\n');

        return line ? (Word){line + 1, strcspn(line + 1, "\n")} : (Word){"", 0};
}

static uint32_t need_element(Word type) {
        static const struct {
                const char *name;
                uint32_t size;
        } types[] = {{"f32", 4}, {"f64", 8}, {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8}};

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (word_is(type, types[i].name))
                        return types[i].size;
        return 0;
}

/* The parameter u64:NAME. */
static bool need_find(Word arguments, Word name, size_t n, uint16_t *ret_index) {
        for (size_t i = 0; i < n && arguments.n > 0; i++) {
                Word argument = word_cut(&arguments, ' ');

                if (!word_is(word_cut(&argument, ':'), "u64") || argument.n != name.n ||
                    memcmp(argument.p, name.p, name.n) != 0)
                        continue;
                *ret_index = (uint16_t)i;
                return true;
        }
        return false;
}

static bool need_number(Word word, uint32_t *ret_number) {
        uint32_t number = 0;

        for (size_t i = 0; i < word.n; i++) {
                if (word.p[i] < '0' || word.p[i] > '9' || number > UINT16_MAX)
                        return false;
                number = number * 10 + (uint32_t)(word.p[i] - '0');
        }
        *ret_number = number;
        return word.n > 0;
}

static bool need_length(Need *need, Word arguments, Word length, size_t n) {
        uint32_t number;

        if (need_number(length, &number))
                return !__builtin_mul_overflow(need->n_fixed, number, &need->n_fixed);
        return need->n_lengths < NEED_LENGTHS_MAX &&
               need_find(arguments, length, n, &need->lengths[need->n_lengths++]);
}

static Need need_argument(Word arguments, Word argument, size_t n) {
        Word direction = word_cut(&argument, ':');
        Need need = {.n_fixed = 1};

        if (!word_is(direction, "in") && !word_is(direction, "out") && !word_is(direction, "inout"))
                return (Need){0};

        word_cut(&argument, ':'); /* its name */
        need.element = need_element(word_cut(&argument, ':'));
        do {
                if (!need_length(&need, arguments, word_cut(&argument, ','), n))
                        return (Need){0};
        } while (argument.n > 0);
        return need;
}

size_t need_parse(const char *text, Need *needs, size_t n) {
        Word arguments = need_arguments(text), rest = arguments;
        size_t n_needs = 0;

        for (size_t i = 0; i < n; i++) {
                needs[i] = (Need){0};
                if (rest.n == 0 || i > UINT16_MAX)
                        continue;
                needs[i] = need_argument(arguments, word_cut(&rest, ' '), n);
                n_needs += needs[i].element > 0;
        }
        return n_needs;
}

void need_describe(const Need *need, uint64_t n_bytes, uint64_t n_has, char *text, size_t n_text) {
        if (n_bytes == UINT64_MAX)
                snprintf(
                        text, n_text,
                        "needs more than 2^64 bytes for these lengths, but its buffer has %" PRIu64,
                        n_has);
        else
                snprintf(text, n_text,
                         "needs %" PRIu64 " bytes (%" PRIu64
                         " elements of %u bytes), but its buffer has %" PRIu64,
                         n_bytes, n_bytes / need->element, need->element, n_has);
}
