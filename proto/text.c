/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/text.h"

#include <stdint.h>
#include <string.h>

typedef struct TextRange {
        uint32_t first, last;
} TextRange;

static const TextRange text_bad[] = {
        {0x00, 0x1f},       /* C0 */
        {0x7f, 0x9f},       /* DEL, C1 */
        {0x61c, 0x61c},     /* Arabic letter mark */
        {0x200e, 0x200f},   /* left-to-right and right-to-left marks */
        {0x2028, 0x202e},   /* line and paragraph separators, embeddings, overrides */
        {0x2066, 0x206f},   /* isolates, deprecated format characters */
        {0xfeff, 0xfeff},   /* byte order mark */
        {0xfff9, 0xfffb},   /* annotations */
        {0xe0000, 0xe007f}, /* tags */
};

static bool text_is_bad(uint32_t c) {
        for (size_t i = 0; i < sizeof(text_bad) / sizeof(*text_bad); ++i)
                if (c >= text_bad[i].first && c <= text_bad[i].last)
                        return true;
        return false;
}

/* Printable ASCII needs no decoding, and most texts have nothing else. Return: how many bytes of it are first. */
static size_t text_n_plain(const uint8_t *p, size_t n) {
        size_t i = 0;

        while (i < n && p[i] >= 0x20 && p[i] < 0x7f)
                ++i;
        return i;
}

static size_t text_length(uint8_t first) {
        if (first < 0x80)
                return 1;
        if (first >= 0xc2 && first <= 0xdf)
                return 2;
        if ((first & 0xf0) == 0xe0)
                return 3;
        return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Length of the UTF-8 sequence that starts here in bytes; 0: it is invalid, as are overlong
 * forms and surrogates. */
static size_t text_decode(const uint8_t *p, uint32_t *ret_c) {
        size_t n = text_length(p[0]);
        uint32_t c = n > 1 ? p[0] & (0x7f >> n) : p[0];

        for (size_t i = 1; i < n; ++i) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c <= 0xdfff))) ||
            (n == 4 && (c < 0x10000 || c > 0x10ffff)))
                return 0;
        *ret_c = c;
        return n;
}

bool text_is_clean(const char *text, size_t max) {
        const uint8_t *p = (const uint8_t *)text;
        size_t n = strlen(text), n_char = 0;
        uint32_t c = 0;

        if (n > max)
                return false;
        for (size_t i = text_n_plain(p, n); i < n; i += n_char) {
                n_char = text_decode(p + i, &c);
                if (!n_char || text_is_bad(c))
                        return false;
        }
        return true;
}

static char *text_replace(char *text, bool keeps_lines) {
        uint8_t *from = (uint8_t *)text, *to = from;

        while (*from) {
                uint32_t c = 0;
                size_t n = text_decode(from, &c);
                bool is_space = n == 1 && (c == '\n' || c == '\t');

                if (is_space && !keeps_lines)
                        *to++ = ' ';
                else if (n == 0 || (text_is_bad(c) && !is_space))
                        *to++ = '?';
                else
                        for (size_t i = 0; i < n; ++i)
                                *to++ = from[i];
                from += n ? n : 1;
        }
        *to = '\0';
        return text;
}

char *text_clean(char *text) {
        return text_replace(text, true);
}

char *text_clean_line(char *text) {
        return text_replace(text, false);
}

size_t text_cut(const char *text, size_t max) {
        size_t n = strnlen(text, max);

        if (!text[n])
                return n;
        for (size_t i = 0; i < 4 && i <= n; ++i)
                if (((uint8_t)text[n - i] & 0xc0) != 0x80)
                        return n - i;
        return n; /* no UTF-8 anyway */
}
