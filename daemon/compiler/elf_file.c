/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/elf_file.h"

#include <string.h>

const void *elf_file_bytes(const ElfFile *file, uint64_t offset, uint64_t n) {
        if (offset > file->n_data || n > file->n_data - offset)
                return NULL;
        return file->data + offset;
}

bool elf_file_section(const ElfFile *file, unsigned i, Elf64_Shdr *ret_section) {
        const void *p;

        if (i >= file->header.e_shnum)
                return false;

        p = elf_file_bytes(file, file->header.e_shoff + (uint64_t)i * sizeof(*ret_section),
                           sizeof(*ret_section));
        if (!p)
                return false;

        memcpy(ret_section, p, sizeof(*ret_section));
        return true;
}

/* Return: a string of a string table, or "" if it has none there. */
static const char *string_at(const char *table, size_t n_table, size_t offset) {
        if (offset >= n_table || !memchr(table + offset, '\0', n_table - offset))
                return "";
        return table + offset;
}

int elf_file_open(const void *image, size_t n_image, ElfFile *ret_file) {
        ElfFile file = {.data = image, .n_data = n_image};
        Elf64_Ehdr *header = &file.header;
        Elf64_Shdr names;

        if (n_image < sizeof(*header))
                return ELF_FILE_E_BROKEN;

        memcpy(header, image, sizeof(*header));
        if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
            header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
            header->e_shoff > n_image)
                return ELF_FILE_E_BROKEN;
        if (!elf_file_bytes(&file, header->e_shoff, (uint64_t)header->e_shnum * sizeof(names)) ||
            !elf_file_section(&file, header->e_shstrndx, &names))
                return ELF_FILE_E_BROKEN;

        file.names = elf_file_bytes(&file, names.sh_offset, names.sh_size);
        file.n_names = names.sh_size;
        if (!file.names)
                return ELF_FILE_E_BROKEN;

        *ret_file = file;
        return 0;
}

const char *elf_file_section_name(const ElfFile *file, const Elf64_Shdr *section) {
        return string_at(file->names, file->n_names, section->sh_name);
}

bool elf_file_find(const ElfFile *file, const char *name, Elf64_Shdr *ret_section) {
        Elf64_Shdr section;

        for (unsigned i = 0; elf_file_section(file, i, &section); i++) {
                if (strcmp(elf_file_section_name(file, &section), name) != 0)
                        continue;
                *ret_section = section;
                return true;
        }
        return false;
}

static int walk_table(const ElfFile *file, const Elf64_Shdr *table, ElfFileOnSymbol on_symbol,
                      void *userdata) {
        const char *symbols, *strings;
        Elf64_Shdr names;
        int r;

        symbols = elf_file_bytes(file, table->sh_offset, table->sh_size);
        if (!symbols || table->sh_entsize != sizeof(Elf64_Sym) ||
            !elf_file_section(file, table->sh_link, &names))
                return ELF_FILE_E_BROKEN;

        strings = elf_file_bytes(file, names.sh_offset, names.sh_size);
        if (!strings)
                return ELF_FILE_E_BROKEN;

        for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
                Elf64_Sym symbol;

                memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
                r = on_symbol(file, &symbol, string_at(strings, names.sh_size, symbol.st_name),
                              userdata);
                if (r)
                        return r;
        }
        return 0;
}

int elf_file_symbols(const ElfFile *file, unsigned type, ElfFileOnSymbol on_symbol,
                     void *userdata) {
        Elf64_Shdr section;
        int r;

        for (unsigned i = 0; elf_file_section(file, i, &section); i++) {
                if (section.sh_type != type)
                        continue;
                r = walk_table(file, &section, on_symbol, userdata);
                if (r)
                        return r;
        }
        return 0;
}
