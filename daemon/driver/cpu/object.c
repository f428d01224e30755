/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/object.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "driver/cpu/image.h"
#include "util/macro.h"

#if defined(__x86_64__)
#define OBJECT_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OBJECT_MACHINE EM_AARCH64
#endif

#define OBJECT_EM_CUDA        190
#define OBJECT_FATBIN         0xba55ed50u
#define OBJECT_FATBIN_WRAPPER 0x466243b1u
#define OBJECT_TEXT_MAX       (64u << 10) /* bytes of text in which PTX says .version */

/* A text that states a PTX version. Reads no further than it is text. */
static bool object_is_ptx(const char *text) {
        static const char word[] = ".version";
        size_t n_match = 0;

        for (size_t i = 0; i < OBJECT_TEXT_MAX; i++) {
                unsigned char c = (unsigned char)text[i];

                if ((c < ' ' && (c < '\t' || c > '\r')) || c == 0x7f)
                        return false;

                n_match = c == word[n_match] ? n_match + 1 : c == word[0];
                if (!word[n_match])
                        return true;
        }

        return false;
}

static CUresult object_check(const Elf64_Ehdr *header) {
        if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
                return CUDA_ERROR_INVALID_IMAGE;
        if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
                return CUDA_ERROR_INVALID_IMAGE;
        if (header->e_machine == OBJECT_EM_CUDA)
                return CUDA_ERROR_NO_BINARY_FOR_GPU;
        if (header->e_machine != OBJECT_MACHINE || header->e_type != ET_DYN)
                return CUDA_ERROR_INVALID_IMAGE;
        if (header->e_shentsize != sizeof(Elf64_Shdr) || !header->e_shnum)
                return CUDA_ERROR_INVALID_IMAGE;

        return CUDA_SUCCESS;
}

/* The linker writes the section headers last, but nothing says that it must. */
static size_t object_end(const Elf64_Ehdr *header) {
        const Elf64_Shdr *sections = (const void *)((const char *)header + header->e_shoff);
        size_t end = header->e_shoff + (size_t)header->e_shnum * sizeof(*sections);

        for (size_t i = 0; i < header->e_shnum; i++)
                if (sections[i].sh_type != SHT_NOBITS)
                        end = MAX(end, sections[i].sh_offset + sections[i].sh_size);

        return end;
}

CUresult object_size(const void *image, size_t *ret_size) {
        uint32_t magic;
        CUresult r;

        memcpy(&magic, image, sizeof(magic));
        if (magic == OBJECT_FATBIN || magic == OBJECT_FATBIN_WRAPPER)
                return CUDA_ERROR_NO_BINARY_FOR_GPU;
        if (memcmp(&magic, ELFMAG, SELFMAG) != 0)
                return object_is_ptx(image) ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                            : CUDA_ERROR_INVALID_IMAGE;

        r = object_check(image);
        if (r)
                return r;

        *ret_size = object_end(image);
        return CUDA_SUCCESS;
}

static const Elf64_Shdr *object_section(const Elf64_Ehdr *header, uint32_t type) {
        const Elf64_Shdr *sections = (const void *)((const char *)header + header->e_shoff);

        for (size_t i = 0; i < header->e_shnum; i++)
                if (sections[i].sh_type == type)
                        return &sections[i];

        return NULL;
}

bool object_has_section(const void *image, const char *name) {
        const Elf64_Ehdr *header = image;
        const Elf64_Shdr *sections = (const void *)((const char *)image + header->e_shoff);
        const char *names;

        if (header->e_shstrndx >= header->e_shnum)
                return false;

        names = (const char *)image + sections[header->e_shstrndx].sh_offset;
        for (size_t i = 0; i < header->e_shnum; i++)
                if (strcmp(names + sections[i].sh_name, name) == 0)
                        return true;

        return false;
}

static bool object_is_variable(const Elf64_Sym *symbol, const char *name) {
        return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
               ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL &&
               ELF64_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT &&
               symbol->st_shndx != SHN_UNDEF &&
               strncmp(name, GPUQ_CPU_VARIABLE, strlen(GPUQ_CPU_VARIABLE)) == 0;
}

CUresult object_variable(const void *image, size_t index, const char **ret_name,
                         size_t *ret_address, size_t *ret_size) {
        const Elf64_Ehdr *header = image;
        const Elf64_Shdr *table = object_section(header, SHT_DYNSYM), *strings;
        const Elf64_Sym *symbols;
        const char *name;

        if (!table || table->sh_link >= header->e_shnum)
                return CUDA_ERROR_NOT_FOUND;

        strings = (const Elf64_Shdr *)((const char *)image + header->e_shoff) + table->sh_link;
        symbols = (const void *)((const char *)image + table->sh_offset);
        for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
                name = (const char *)image + strings->sh_offset + symbols[i].st_name;
                if (!object_is_variable(&symbols[i], name) || index-- > 0)
                        continue;

                *ret_name = name + strlen(GPUQ_CPU_VARIABLE);
                *ret_address = symbols[i].st_value;
                *ret_size = symbols[i].st_size;
                return CUDA_SUCCESS;
        }

        return CUDA_ERROR_NOT_FOUND;
}
