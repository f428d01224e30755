/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel name
 *
 * Names are compared token by token. A token that can be written in several ways, such as a number
 * or an integer type, has a value instead of a text.
 */
#include "util/kernel-name.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"
#include "util/symbol.h"

typedef enum NameTokenKind {
        NAME_END,
        NAME_TEXT,   /* a word or a sign */
        NAME_NUMBER, /* an integer */
        NAME_TYPE,   /* a type of integers; the value tells which */
} NameTokenKind;

typedef struct NameToken {
        NameTokenKind kind;
        const char *text;
        size_t n_text;
        uint64_t value;
} NameToken;

/* Values of NAME_TYPE: a size, and whether its sign was named. */
enum {
        TYPE_INT = 1,
        TYPE_CHAR,
        TYPE_SHORT,
        TYPE_LONG,
        TYPE_LONG_LONG,
        TYPE_SIGNED = 16, /* of a char only, whose sign is not known otherwise */
        TYPE_UNSIGNED = 32,
};

static const struct {
        const char *name;
        unsigned type;
} aliases[] = {
        {"uint", TYPE_INT | TYPE_UNSIGNED},
        {"ushort", TYPE_SHORT | TYPE_UNSIGNED},
        {"uchar", TYPE_CHAR | TYPE_UNSIGNED},
        {"ulong", TYPE_LONG | TYPE_UNSIGNED},
        {"int8_t", TYPE_CHAR | TYPE_SIGNED},
        {"uint8_t", TYPE_CHAR | TYPE_UNSIGNED},
        {"int16_t", TYPE_SHORT},
        {"uint16_t", TYPE_SHORT | TYPE_UNSIGNED},
        {"int32_t", TYPE_INT},
        {"uint32_t", TYPE_INT | TYPE_UNSIGNED},
        {"int64_t", TYPE_LONG},
        {"uint64_t", TYPE_LONG | TYPE_UNSIGNED},
        {"size_t", TYPE_LONG | TYPE_UNSIGNED},
        {"ptrdiff_t", TYPE_LONG},
};

/* Words that may stand before a type and say nothing. */
static const char *const fillers[] = {"struct", "class", "enum", "union", "typename", "template"};

static bool is_word(char letter) {
        return isalnum((unsigned char)letter) || letter == '_' || letter == '$';
}

static bool token_is(const NameToken *token, const char *text) {
        return token->kind == NAME_TEXT && token->n_text == strlen(text) &&
               memcmp(token->text, text, token->n_text) == 0;
}

static const char *skip_blanks(const char *p) {
        while (isspace((unsigned char)*p))
                p++;
        return p;
}

static NameToken text_token(const char **at, size_t n) {
        const char *text = *at;

        *at += n;
        return (NameToken){.kind = NAME_TEXT, .text = text, .n_text = n};
}

static NameToken number_token(const char **at) {
        const char *text = *at;
        uint64_t value;
        char *end;
        int base = text[0] == '0' && tolower((unsigned char)text[1]) == 'b' ? 2 : 0;

        value = strtoull(base ? text + 2 : text, &end, base);
        end += strspn(end, "uUlL");
        if (is_word(*end) || *end == '.') /* not an integer */
                return text_token(at, strspn(text, "0123456789abcdefABCDEFxXpP.uUlL"));

        *at = end;
        return (NameToken){.kind = NAME_NUMBER, .value = value};
}

static NameToken word_token(const char **at) {
        size_t n = 0;

        while (is_word((*at)[n]))
                n++;
        return text_token(at, n);
}

/* What one word adds to a type of integers. Return: false: it is not of one. */
static bool type_add(const NameToken *word, unsigned *size, unsigned *sign) {
        if (token_is(word, "unsigned"))
                *sign = TYPE_UNSIGNED;
        else if (token_is(word, "signed"))
                *sign = TYPE_SIGNED;
        else if (token_is(word, "char"))
                *size = TYPE_CHAR;
        else if (token_is(word, "short"))
                *size = TYPE_SHORT;
        else if (token_is(word, "long"))
                *size = *size == TYPE_LONG ? TYPE_LONG_LONG : TYPE_LONG;
        else if (token_is(word, "int"))
                *size = *size ?: TYPE_INT;
        else
                return false;
        return true;
}

/* @word begins a type such as "long unsigned int"; *at is behind it, and behind the type afterwards. */
static NameToken type_token(const char **at, NameToken word) {
        unsigned size = 0, sign = 0;
        const char *end = *at;

        while (type_add(&word, &size, &sign)) {
                *at = end;
                end = skip_blanks(end);
                word = word_token(&end);
        }
        if (size != TYPE_CHAR && sign == TYPE_SIGNED)
                sign = 0;
        return (NameToken){.kind = NAME_TYPE, .value = (size ?: TYPE_INT) | sign};
}

static bool is_filler(const NameToken *word) {
        for (size_t i = 0; i < ARRAY_SIZE(fillers); i++)
                if (token_is(word, fillers[i]))
                        return true;
        return false;
}

/* "(Color)1", as demanglers write a number of another type than int. Return: behind the brackets, or NULL. */
static const char *skip_cast(const char *p) {
        const char *end = p + 1;

        while (is_word(*end) || *end == ':' || *end == ' ')
                end++;
        if (end == p + 1 || *end != ')')
                return NULL;
        end = skip_blanks(end + 1);
        return isdigit((unsigned char)*end) || *end == '-' || *end == '\'' ? end : NULL;
}

/* One of the names of a type that has several. Return: false: it is not. */
static bool find_alias(const NameToken *word, NameToken *ret_type) {
        for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
                if (token_is(word, aliases[i].name)) {
                        *ret_type = (NameToken){.kind = NAME_TYPE, .value = aliases[i].type};
                        return true;
                }
        return false;
}

/* What a word that was read means; *at is behind it. */
static NameToken meaning_of(const char **at, NameToken word) {
        unsigned size = 0, sign = 0;
        const char *end = *at;
        NameToken type;

        if (type_add(&word, &size, &sign))
                return type_token(at, word);
        if (token_is(&word, "true") || token_is(&word, "false"))
                return (NameToken){.kind = NAME_NUMBER, .value = token_is(&word, "true")};
        if (find_alias(&word, &type))
                return type;
        if (token_is(&word, "std") && strncmp(end, "::", 2) == 0) {
                NameToken inner;

                end += 2;
                inner = word_token(&end);
                if (find_alias(&inner, &type)) { /* std::uint32_t */
                        *at = end;
                        return type;
                }
        }
        return word;
}

/* Behind what says nothing at the start of @p, or @p. */
static const char *skip_fillers(const char *p) {
        for (;;) {
                const char *end = p = skip_blanks(p);
                NameToken word = word_token(&end);

                if (word.n_text == 0 && *p == '(')
                        end = skip_cast(p);
                else if (!is_filler(&word))
                        return p;
                if (!end)
                        return p;
                p = end;
        }
}

static NameToken next_token(const char **at) {
        const char *p = *at = skip_fillers(*at);

        if (!*p)
                return (NameToken){.kind = NAME_END};
        if (isdigit((unsigned char)*p))
                return number_token(at);
        if (is_word(*p))
                return meaning_of(at, word_token(at));
        if (p[0] == '\'' && p[1] && p[1] != '\\' && p[2] == '\'') {
                *at += 3;
                return (NameToken){.kind = NAME_NUMBER, .value = (unsigned char)p[1]};
        }
        return text_token(at, strncmp(p, "::", 2) == 0 ? 2 : 1);
}

static bool token_equal(const NameToken *a, const NameToken *b) {
        if (a->kind != b->kind)
                return false;
        if (a->kind == NAME_TEXT)
                return a->n_text == b->n_text && memcmp(a->text, b->text, a->n_text) == 0;
        return a->value == b->value;
}

/* "::f" and "&f" are f. */
static const char *name_begin(const char *name) {
        name = skip_blanks(name);
        if (*name == '&')
                name = skip_blanks(name + 1);
        return strncmp(name, "::", 2) == 0 ? name + 2 : name;
}

bool kernel_name_equal(const char *a, const char *b) {
        NameToken of_a, of_b;

        a = name_begin(a);
        b = name_begin(b);
        do {
                of_a = next_token(&a);
                of_b = next_token(&b);
                if (!token_equal(&of_a, &of_b))
                        return false;
        } while (of_a.kind != NAME_END);

        return true;
}

/* ---- among the kernels of a module ------------------------------------------------- */

static bool is_symbol(const KernelNames *names, size_t i, const char *name) {
        return strcmp(names->symbol(names->kernels, i), name) == 0;
}

/* As most names are given, and quick. */
static bool is_exact(const KernelNames *names, size_t i, const char *name) {
        return strcmp(names->name(names->kernels, i), name) == 0;
}

static bool is_name(const KernelNames *names, size_t i, const char *name) {
        return kernel_name_equal(names->name(names->kernels, i), name);
}

bool kernel_name_may_be(const KernelNames *names, size_t i, const char *name) {
        return symbol_matches(names->symbol(names->kernels, i), name) ||
               name_matches(names->name(names->kernels, i), name);
}

int kernel_name_find(const KernelNames *names, const char *name, size_t *ret_i) {
        static bool (*const ways[])(const KernelNames *, size_t, const char *) = {
                is_symbol,
                is_exact,
                is_name,
                kernel_name_may_be,
        };

        for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
                size_t found = 0, n_found = 0;

                for (size_t i = 0; i < names->n_kernels; i++)
                        if (ways[way](names, i, name) && n_found++ == 0)
                                found = i;
                if (n_found > 1)
                        return KERNEL_NAME_E_AMBIGUOUS;
                if (n_found == 1) {
                        *ret_i = found;
                        return 0;
                }
        }
        return KERNEL_NAME_E_NONE;
}
