/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/cpu_image.h"

#include <string.h>

#include "compiler/elf_file.h"
#include "driver/cpu/image.h"

#define OWN_PREFIX "gpuq_cpu_" /* of what the header itself defines */

static int on_symbol(const ElfFile *file, const Elf64_Sym *symbol, const char *name,
                     void *userdata) {
        if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT ||
            ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL ||
            strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
                return 0;

        return signature_add_variable(userdata,
                                      &(SignatureVariable){.name = name, .n_name = strlen(name)});
}

/* "NAME <tab> KINDS" */
static int read_line(Signature *signature, const char *line, size_t n_line) {
        const char *tab = memchr(line, '\t', n_line);
        _cleanup_(freep) char *kinds = NULL;

        if (!tab)
                return CPU_IMAGE_E_BROKEN;

        kinds = strndup(tab + 1, line + n_line - tab - 1);
        if (!kinds)
                return -ENOMEM;
        if (strspn(kinds, GPUQ_CPU_LETTERS) != strlen(kinds) && strcmp(kinds, "-") != 0)
                return CPU_IMAGE_E_BROKEN;

        return signature_add_kernel(signature, line, tab - line,
                                    strcmp(kinds, "-") == 0 ? "" : kinds);
}

static int read_lines(Signature *signature, const char *text, size_t n_text) {
        const char *end = text + n_text;
        int r;

        while (text < end) {
                const char *newline;

                if (*text == '\0') {
                        text++;
                        continue;
                }
                newline = memchr(text, '\n', end - text);
                if (!newline)
                        return CPU_IMAGE_E_BROKEN;
                r = read_line(signature, text, newline - text);
                if (r)
                        return r;
                text = newline + 1;
        }
        return 0;
}

int cpu_image_scan(const void *image, size_t n_image, Signature *signature) {
        const char *lines;
        Elf64_Shdr section;
        ElfFile file;
        int r;

        if (elf_file_open(image, n_image, &file))
                return CPU_IMAGE_E_BROKEN;

        if (elf_file_find(&file, GPUQ_CPU_SIGNATURE, &section)) {
                lines = elf_file_bytes(&file, section.sh_offset, section.sh_size);
                r = lines ? read_lines(signature, lines, section.sh_size) : CPU_IMAGE_E_BROKEN;
                if (r)
                        return r;
        }
        if (elf_file_find(&file, GPUQ_CPU_PRINTF, &section))
                signature->has_printf = true;

        r = elf_file_symbols(&file, SHT_DYNSYM, on_symbol, signature);
        return r > 0 ? CPU_IMAGE_E_BROKEN : r;
}
