/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_ELF_FILE_H
#define GPUQ_COMPILER_ELF_FILE_H

/*
 * ELF file
 *
 * Sections and symbols of a 64-bit little-endian ELF file in memory. Pure; every offset and length
 * is checked against the size before it is used.
 */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        _ELF_FILE_E_SUCCESS,
        ELF_FILE_E_BROKEN, /* not such a file, or its tables lie outside of it */
};

typedef struct ElfFile {
        const char *data; /* the caller's */
        size_t n_data;
        Elf64_Ehdr header;
        const char *names; /* of sections */
        size_t n_names;
} ElfFile;

/** Called for each symbol; anything but 0 ends the walk and is its result. */
typedef int (*ElfFileOnSymbol)(const ElfFile *file, const Elf64_Sym *symbol, const char *name,
                               void *userdata);

/** elf_file_open() - check the header of an image. Return: 0 or ELF_FILE_E_BROKEN. */
int elf_file_open(const void *image, size_t n_image, ElfFile *ret_file);
/** elf_file_bytes() - some bytes of it, or NULL if they are not all inside. */
const void *elf_file_bytes(const ElfFile *file, uint64_t offset, uint64_t n);
/** elf_file_section() - by index. Return: false if there are fewer. */
bool elf_file_section(const ElfFile *file, unsigned i, Elf64_Shdr *ret_section);
/** elf_file_section_name() - "" if it has none. */
const char *elf_file_section_name(const ElfFile *file, const Elf64_Shdr *section);
/** elf_file_find() - a section by name. Return: false if there is none. */
bool elf_file_find(const ElfFile *file, const char *name, Elf64_Shdr *ret_section);
/**
 * elf_file_symbols() - walk the symbol tables of a type
 * @type: SHT_SYMTAB or SHT_DYNSYM
 *
 * Return: 0, ELF_FILE_E_BROKEN, or what @on_symbol gave.
 */
int elf_file_symbols(const ElfFile *file, unsigned type, ElfFileOnSymbol on_symbol, void *userdata);

#endif
