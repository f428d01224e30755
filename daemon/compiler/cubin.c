/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cubin
 *
 * A kernel is a global or weak function of the symbol table with a section
 * .nv.info.NAME, which plain device functions that were not inlined lack. A
 * variable is an object in .nv.global, .nv.global.init or .nv.constant3.
 */

#include "compiler/cubin.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#define EM_CUDA_NUMBER 190
#define ABI_NEW        8 /* EI_ABIVERSION from which the flags hold the sm one byte higher */

typedef struct Cubin {
        const char *data;
        size_t n_data;
        Elf64_Ehdr header;
        const char *names; /* of sections */
        size_t n_names;
} Cubin;

/* Return: the bytes, or NULL if they are not all inside. */
static const void *bytes_at(const Cubin *cubin, uint64_t offset, uint64_t n) {
        if (offset > cubin->n_data || n > cubin->n_data - offset)
                return NULL;
        return cubin->data + offset;
}

static bool section_at(const Cubin *cubin, unsigned i, Elf64_Shdr *ret_section) {
        const void *p;

        if (i >= cubin->header.e_shnum)
                return false;

        p = bytes_at(cubin, cubin->header.e_shoff + (uint64_t)i * sizeof(*ret_section),
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

static int cubin_open(Cubin *cubin, const void *image, size_t n_image) {
        Elf64_Ehdr *header = &cubin->header;
        Elf64_Shdr names;

        *cubin = (Cubin){.data = image, .n_data = n_image};
        if (n_image < sizeof(*header))
                return CUBIN_E_BROKEN;

        memcpy(header, image, sizeof(*header));
        if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
            header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_CUDA_NUMBER ||
            header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > n_image)
                return CUBIN_E_BROKEN;
        if (!bytes_at(cubin, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)) ||
            !section_at(cubin, header->e_shstrndx, &names))
                return CUBIN_E_BROKEN;

        cubin->names = bytes_at(cubin, names.sh_offset, names.sh_size);
        cubin->n_names = names.sh_size;
        return cubin->names ? 0 : CUBIN_E_BROKEN;
}

static unsigned cubin_sm(const Cubin *cubin) {
        unsigned shift = cubin->header.e_ident[EI_ABIVERSION] >= ABI_NEW ? 8 : 0;

        return cubin->header.e_flags >> shift & 0xff;
}

static bool has_section(const Cubin *cubin, const char *prefix, const char *name) {
        size_t n_prefix = strlen(prefix);
        Elf64_Shdr section;

        for (unsigned i = 0; section_at(cubin, i, &section); i++) {
                const char *s = string_at(cubin->names, cubin->n_names, section.sh_name);

                if (strncmp(s, prefix, n_prefix) == 0 && strcmp(s + n_prefix, name) == 0)
                        return true;
        }
        return false;
}

static bool is_variables(const Cubin *cubin, unsigned i) {
        Elf64_Shdr section;
        const char *s;

        if (!section_at(cubin, i, &section))
                return false;

        s = string_at(cubin->names, cubin->n_names, section.sh_name);
        return strcmp(s, ".nv.global") == 0 || strcmp(s, ".nv.global.init") == 0 ||
               strcmp(s, ".nv.constant3") == 0;
}

/* Format strings are kept beside the variables, under names that no source can write. */
static bool is_string(const char *name) {
        return name[0] == '$' || strncmp(name, "_$_", 3) == 0 ||
               strncmp(name, "__unnamed_", 10) == 0;
}

static int read_symbol(const Cubin *cubin, const Elf64_Sym *symbol, const char *name,
                       Signature *signature) {
        unsigned type = ELF64_ST_TYPE(symbol->st_info);

        if (strcmp(name, "vprintf") == 0)
                signature->has_printf = true;
        if (symbol->st_shndx == SHN_UNDEF)
                return 0;
        if (type == STT_FUNC && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
            has_section(cubin, ".nv.info.", name))
                return signature_add_kernel(signature, name, strlen(name), NULL);
        if (type == STT_OBJECT && !is_string(name) && is_variables(cubin, symbol->st_shndx))
                return signature_add_variable(signature, name, strlen(name));
        return 0;
}

static int read_symbols(const Cubin *cubin, const Elf64_Shdr *table, Signature *signature) {
        const char *symbols, *strings;
        Elf64_Shdr names;
        int r;

        symbols = bytes_at(cubin, table->sh_offset, table->sh_size);
        if (!symbols || table->sh_entsize != sizeof(Elf64_Sym) ||
            !section_at(cubin, table->sh_link, &names))
                return CUBIN_E_BROKEN;

        strings = bytes_at(cubin, names.sh_offset, names.sh_size);
        if (!strings)
                return CUBIN_E_BROKEN;

        for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
                Elf64_Sym symbol;

                memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
                r = read_symbol(cubin, &symbol, string_at(strings, names.sh_size, symbol.st_name),
                                signature);
                if (r)
                        return r;
        }
        return 0;
}

int cubin_scan(const void *image, size_t n_image, Signature *signature, unsigned *ret_sm) {
        Elf64_Shdr section;
        Cubin cubin;
        int r;

        r = cubin_open(&cubin, image, n_image);
        if (r)
                return r;

        for (unsigned i = 0; section_at(&cubin, i, &section); i++) {
                if (section.sh_type != SHT_SYMTAB)
                        continue;
                r = read_symbols(&cubin, &section, signature);
                if (r)
                        return r;
        }

        *ret_sm = cubin_sm(&cubin);
        return 0;
}

bool cubin_runs_on(unsigned sm, unsigned device) {
        return sm / 10 == device / 10 && sm <= device;
}
