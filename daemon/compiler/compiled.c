/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled
 *
 * Packing is a copy. Parsing checks the lengths in the header against the total size before it
 * reads any section. Then it copies the text sections and splits the copy into strings in place.
 */

#include "compiler/compiled.h"

#include <assert.h>
#include <string.h>

#define LETTERS        "bpilfdcswm" /* index: gpuq.v1.Kind */
#define KINDS_MAX      4096u        /* parameters of one kernel; CUDA allows 32 KiB of them */
#define TEXT_BYTES_MAX (64u << 20)

static const char magic[8] = "GPUQCMP3";

typedef struct Header {
        char magic[8];
        uint32_t status;
        uint32_t flags;
        uint64_t n_total; /* header and sections: a result that was cut short is noticed */
        uint64_t n_image;
        uint64_t n_log;
        uint64_t n_signature;
        uint64_t n_variables;
        uint64_t n_named;
        uint64_t n_sites;
} Header;

static_assert(sizeof(Header) == COMPILED_HEADER_BYTES, "the header is packed");
static_assert(offsetof(Header, flags) == COMPILED_FLAGS_OFFSET, "as the header file says");

char compiled_letter(unsigned kind) {
        assert(kind < strlen(LETTERS));
        return LETTERS[kind];
}

const char *compiled_status_name(CompiledStatus status) {
        static const char *const names[] = {
                [COMPILED_OK] = "ok",
                [COMPILED_FAILED] = "compile error",
                [COMPILED_NOT_MODULE] = "not a module",
                [COMPILED_NO_BINARY] = "no binary for this device",
                [COMPILED_BAD_OPTION] = "option not allowed",
                [COMPILED_NO_COMPILER] = "no compiler",
                [COMPILED_NO_KERNEL] = "no such kernel",
                [COMPILED_INTERNAL] = "internal error",
        };

        return (size_t)status < ARRAY_SIZE(names) ? names[status] : "?";
}

static void *append(void *to, const void *from, size_t n) {
        if (n > 0)
                memcpy(to, from, n);
        return (char *)to + n;
}

int compiled_pack(const CompiledSections *sections, void **ret_data, size_t *ret_n_data) {
        Header header = {
                .status = sections->status,
                .flags = sections->flags,
                .n_total = sizeof(header) + sections->n_image + sections->n_log +
                           sections->n_signature + sections->n_variables + sections->n_named +
                           sections->n_sites,
                .n_image = sections->n_image,
                .n_log = sections->n_log,
                .n_signature = sections->n_signature,
                .n_variables = sections->n_variables,
                .n_named = sections->n_named,
                .n_sites = sections->n_sites,
        };
        void *data, *p;

        data = malloc(header.n_total);
        if (!data)
                return -ENOMEM;

        memcpy(header.magic, magic, sizeof(magic));
        p = append(data, &header, sizeof(header));
        p = append(p, sections->image, sections->n_image);
        p = append(p, sections->log, sections->n_log);
        p = append(p, sections->signature, sections->n_signature);
        p = append(p, sections->variables, sections->n_variables);
        p = append(p, sections->named, sections->n_named);
        append(p, sections->sites, sections->n_sites);

        *ret_data = data;
        *ret_n_data = header.n_total;
        return 0;
}

static int header_read(const void *data, size_t n_data, Header *ret_header) {
        Header header;
        uint64_t left;

        if (n_data < sizeof(header))
                return COMPILED_E_BROKEN;

        memcpy(&header, data, sizeof(header));
        if (memcmp(header.magic, magic, sizeof(magic)) || header.status >= _COMPILED_STATUS_N ||
            (header.flags & ~(uint32_t)_COMPILED_FLAGS) || header.n_total != n_data)
                return COMPILED_E_BROKEN;

        /* One after the other against what is left, so that no sum can overflow. */
        left = n_data - sizeof(header);
        for (size_t i = 0; i < 6; i++) {
                uint64_t n = (&header.n_image)[i];

                if (n > left || (i > 0 && n > TEXT_BYTES_MAX))
                        return COMPILED_E_BROKEN;
                left -= n;
        }
        if (left > 0)
                return COMPILED_E_BROKEN;

        *ret_header = header;
        return 0;
}

static size_t count_lines(const char *s, size_t n) {
        size_t lines = 0;

        for (size_t i = 0; i < n; i++)
                lines += s[i] == '\n';

        return lines;
}

/* Ends the field that starts at *at and moves past it. Return: the field, or NULL if there is none. */
static char *cut(char **at, char *end, char delimiter) {
        char *field = *at, *found;

        found = memchr(field, delimiter, end - field);
        if (!found)
                return NULL;

        *found = '\0';
        *at = found + 1;
        return field;
}

/* Writes "\n" back to newlines, in place. */
static void unescape(char *s) {
        char *to = s;

        for (; *s; s++) {
                if (s[0] == '\\' && s[1] == 'n') {
                        *to++ = '\n';
                        s++;
                } else {
                        *to++ = *s;
                }
        }
        *to = '\0';
}

static int parse_kinds(CompiledKernel *kernel, const char *letters, uint8_t **kinds) {
        if (strcmp(letters, "?") == 0)
                return 0;

        kernel->kinds_known = true;
        kernel->kinds = *kinds;
        if (strcmp(letters, "-") == 0)
                return 0;

        for (; *letters; letters++) {
                const char *found = strchr(LETTERS, *letters);

                if (!found || kernel->n_kinds == KINDS_MAX)
                        return COMPILED_E_BROKEN;
                *(*kinds)++ = found - LETTERS;
                kernel->n_kinds++;
        }
        return kernel->n_kinds > 0 ? 0 : COMPILED_E_BROKEN;
}

static int parse_kernel(CompiledKernel *kernel, char *line, char *end, uint8_t **kinds) {
        char *letters, *symbol, *name, *text;

        letters = cut(&line, end, '\t');
        symbol = letters ? cut(&line, end, '\t') : NULL;
        name = symbol ? cut(&line, end, '\t') : NULL;
        text = name ? cut(&line, end, '\n') : NULL;
        if (!text || line != end || !*symbol || !*name)
                return COMPILED_E_BROKEN;

        unescape(text);
        kernel->symbol = symbol;
        kernel->name = name;
        kernel->text = text;
        return parse_kinds(kernel, letters, kinds);
}

static int parse_signature(Compiled *compiled, char *s, size_t n) {
        char *end = s + n;
        uint8_t *kinds;
        int r;

        compiled->kernels = calloc(count_lines(s, n) + 1, sizeof(*compiled->kernels));
        compiled->kinds = kinds = malloc(n + 1);
        if (!compiled->kernels || !compiled->kinds)
                return -ENOMEM;

        while (s < end) {
                char *newline = memchr(s, '\n', end - s);

                if (!newline || memchr(s, '\0', newline - s))
                        return COMPILED_E_BROKEN;
                r = parse_kernel(&compiled->kernels[compiled->n_kernels], s, newline + 1, &kinds);
                if (r)
                        return r;
                compiled->n_kernels++;
                s = newline + 1;
        }
        return 0;
}

/* One a line. @ret_names: also after an error, to be freed by compiled_free(). */
static int parse_names(char *s, size_t n, const char ***ret_names, size_t *ret_n_names) {
        const char **names;
        char *end = s + n;

        *ret_names = names = calloc(count_lines(s, n) + 1, sizeof(*names));
        if (!names)
                return -ENOMEM;

        while (s < end) {
                char *name = cut(&s, end, '\n');

                if (!name || !*name)
                        return COMPILED_E_BROKEN;
                names[(*ret_n_names)++] = name;
        }
        return 0;
}

/* Copies a text section to *at, a zero byte behind it, and moves past both. */
static char *copy_section(char **at, const char **text, size_t n) {
        char *copy = *at;

        append(copy, *text, n);
        *text += n;
        *at += n + 1;
        return copy;
}

static int parse_text(Compiled *compiled, const Header *header, const char *text) {
        size_t n = header->n_log + header->n_signature + header->n_variables + header->n_named +
                   header->n_sites;
        char *at, *signature, *variables, *named;
        int r;

        compiled->strings = at = calloc(1, n + 5);
        if (!compiled->strings)
                return -ENOMEM;

        compiled->log = copy_section(&at, &text, header->n_log);
        signature = copy_section(&at, &text, header->n_signature);
        variables = copy_section(&at, &text, header->n_variables);
        named = copy_section(&at, &text, header->n_named);
        compiled->sites = copy_section(&at, &text, header->n_sites);

        r = parse_signature(compiled, signature, header->n_signature);
        if (r == 0)
                r = parse_names(variables, header->n_variables, &compiled->variables,
                                &compiled->n_variables);
        if (r == 0)
                r = parse_names(named, header->n_named, &compiled->named, &compiled->n_named);
        return r;
}

int compiled_parse(const void *data, size_t n_data, Compiled **ret_compiled) {
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        Header header;
        int r;

        r = header_read(data, n_data, &header);
        if (r)
                return r;
        if (header.status == COMPILED_OK && header.n_image == 0)
                return COMPILED_E_BROKEN;

        compiled = calloc(1, sizeof(*compiled));
        if (!compiled)
                return -ENOMEM;

        compiled->status = header.status;
        compiled->flags = header.flags;
        compiled->image = (const char *)data + sizeof(header);
        compiled->n_image = header.n_image;
        r = parse_text(compiled, &header, (const char *)compiled->image + header.n_image);
        if (r)
                return r;

        *ret_compiled = TAKE_PTR(compiled);
        return 0;
}

Compiled *compiled_free(Compiled *compiled) {
        if (!compiled)
                return NULL;

        free(compiled->kernels);
        free(compiled->variables);
        free(compiled->named);
        free(compiled->kinds);
        free(compiled->strings);
        free(compiled);
        return NULL;
}
