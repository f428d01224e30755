/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letters that an assembler may understand in another way than the reader: it would take for code what the reader takes
 * for a comment or a string, and what nobody fenced would run.
 */
#include "compiler/fence_text.h"

typedef enum Within {
        WITHIN_CODE,
        WITHIN_STRING,
        WITHIN_LINE,  /* a comment up to the end of the line */
        WITHIN_BLOCK, /* a comment between marks */
} Within;

/* Return: what is wrong with the letter at @s wherever it stands, or NULL. */
static const char *find_unclear(const char *s, const char *end) {
        unsigned char c = (unsigned char)*s;

        if (c == '\\')
                return "a backslash";
        if (c == '\r')
                return s + 1 < end && s[1] == '\n' ? NULL : "a carriage return";
        return (c < ' ' && c != '\t' && c != '\n') || c == 0x7f ? "a control character" : NULL;
}

static bool is_pair(const char *s, const char *end, const char *pair) {
        return end - s >= 2 && s[0] == pair[0] && s[1] == pair[1];
}

static Within enter(const char *s, const char *end) {
        if (*s == '"')
                return WITHIN_STRING;
        if (is_pair(s, end, "//"))
                return WITHIN_LINE;
        return is_pair(s, end, "/*") ? WITHIN_BLOCK : WITHIN_CODE;
}

static bool is_left(const char *s, const char *begin, const char *end, Within within) {
        if (within == WITHIN_STRING)
                return *s == '"';
        if (within == WITHIN_LINE)
                return *s == '\n';
        return s - begin >= 3 && is_pair(s - 1, end, "*/");
}

/* Return: what cannot be fenced at *at, which begins at the text; NULL: nothing. */
static const char *find_unclear_in(const char **at, const char *end) {
        Within within = WITHIN_CODE;
        const char *begin = *at, *what;

        for (; *at < end; ++*at) {
                what = find_unclear(*at, end);
                if (what)
                        return what;
                if (within == WITHIN_STRING && **at == '\n')
                        return "a string of several lines";
                if (within == WITHIN_CODE && **at == '#')
                        return "a preprocessor directive";
                if (within == WITHIN_CODE) {
                        within = enter(*at, end);
                        begin = *at;
                } else if (is_left(*at, begin, end, within)) {
                        within = WITHIN_CODE;
                }
        }
        return within == WITHIN_STRING || within == WITHIN_BLOCK
                       ? "a string or comment without an end"
                       : NULL;
}

void fence_check_letters(FenceText *fence) {
        const char *at = fence->edits.text.s, *end = fence->edits.text.s + fence->edits.text.n;
        const char *what = find_unclear_in(&at, end);
        unsigned line = 1;

        for (const char *s = fence->edits.text.s; what && s < at; s++)
                line += *s == '\n';
        if (what)
                ptx_edits_refuse(&fence->edits, "line %u: %s cannot be fenced", line, what);
}
