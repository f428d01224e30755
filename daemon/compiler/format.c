/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format
 *
 * Most formats are recognized by their first bytes. PTX is text with its two directives. Other
 * text counts as source, so that the compiler's own message says what is wrong with it.
 */

#include "compiler/format.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_WRAPPER_MAGIC                                                                       \
        0x466243b1u /* what nvcc puts before a pointer to it in a host program */
#define EM_CUDA_NUMBER 190
#define TEXT_LOOKED_AT (64u << 10)

static const char *const names[] = {"auto",   "source",  "ptx",   "cubin",
                                    "fatbin", "builtin", "opencl"};

static bool is_text(const unsigned char *s, size_t n) {
        if (n == 0)
                return false;

        for (size_t i = 0; i < n; i++)
                if (s[i] < ' ' && !isspace(s[i]))
                        return false;

        return true;
}

/* A directive at the start of a line, blanks before it allowed: comments may mention one. */
static bool has_directive(const char *s, size_t n, const char *directive) {
        size_t n_directive = strlen(directive);
        const char *end = s + n;

        for (const char *line = s; line < end;) {
                const char *next = memchr(line, '\n', end - line);

                while (line < end && (*line == ' ' || *line == '\t'))
                        line++;
                if ((size_t)(end - line) > n_directive && !memcmp(line, directive, n_directive) &&
                    isspace((unsigned char)line[n_directive]))
                        return true;
                if (!next)
                        break;
                line = next + 1;
        }
        return false;
}

static Format detect_elf(const unsigned char *s, size_t n) {
        uint16_t machine;

        if (n < sizeof(Elf64_Ehdr))
                return FORMAT_UNKNOWN;

        memcpy(&machine, s + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
        return machine == EM_CUDA_NUMBER ? FORMAT_CUBIN : FORMAT_HOST_ELF;
}

Format format_detect(const void *image, size_t n_image) {
        size_t n = MIN(n_image, TEXT_LOOKED_AT);
        uint32_t magic = 0;

        if (n >= sizeof(magic))
                memcpy(&magic, image, sizeof(magic));
        if (magic == FATBIN_MAGIC || magic == FATBIN_WRAPPER_MAGIC)
                return FORMAT_FATBIN;
        if (n >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG))
                return detect_elf(image, n);

        /* PTX is often passed with its final zero byte. */
        while (n == n_image && n > 0 && !((const char *)image)[n - 1])
                n = --n_image;
        if (!is_text(image, n))
                return FORMAT_UNKNOWN;
        if (has_directive(image, n, ".version") && has_directive(image, n, ".target"))
                return FORMAT_PTX;

        return FORMAT_SOURCE;
}

const char *format_name(Format format) {
        return (size_t)format < ARRAY_SIZE(names) ? names[format] : "?";
}

int format_parse(const char *name, Format *ret_format) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret_format = i;
                        return 0;
                }
        }
        return -EINVAL;
}

void format_describe(const void *image, size_t n_image, char *text, size_t n_text) {
        const unsigned char *s = image;
        size_t n = MIN(n_image, 8), at;
        char shown[9] = "";

        if (n == 0) {
                snprintf(text, n_text, "is empty");
                return;
        }

        at = snprintf(text, n_text, "starts with");
        for (size_t i = 0; i < n; i++) {
                shown[i] = isprint(s[i]) ? s[i] : '.';
                if (at < n_text)
                        at += snprintf(text + at, n_text - at, " %02x", s[i]);
        }
        if (at < n_text)
                snprintf(text + at, n_text - at, " \"%s\"", shown);
}
