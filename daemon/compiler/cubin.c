/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cubin
 *
 * A kernel is a global or weak function of the symbol table that is marked as an
 * entry, which device functions are not, and that has a section .nv.info.NAME. A
 * variable is an object in .nv.global, .nv.global.init or .nv.constant3.
 */

#include "compiler/cubin.h"

#include <stdio.h>
#include <string.h>

#include "compiler/elf_file.h"
#include "util/symbol.h"

#define EM_CUDA_NUMBER 190
#define STO_ENTRY      0x10
#define ABI_NEW        8 /* EI_ABIVERSION from which the flags hold the sm one byte higher */

static unsigned read_sm(const ElfFile *file) {
        unsigned shift = file->header.e_ident[EI_ABIVERSION] >= ABI_NEW ? 8 : 0;

        return file->header.e_flags >> shift & 0xff;
}

static bool is_kernel(const ElfFile *file, const char *name) {
        _cleanup_(freep) char *section_name = NULL;
        Elf64_Shdr section;

        return asprintf(&section_name, ".nv.info.%s", name) >= 0 &&
               elf_file_find(file, section_name, &section);
}

static bool holds_variables(const ElfFile *file, const Elf64_Shdr *section) {
        const char *s = elf_file_section_name(file, section);

        return strcmp(s, ".nv.global") == 0 || strcmp(s, ".nv.global.init") == 0 ||
               strcmp(s, ".nv.constant3") == 0;
}

static int on_symbol(const ElfFile *file, const Elf64_Sym *symbol, const char *name,
                     void *userdata) {
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        Elf64_Shdr section;
        Signature *signature = userdata;

        if (strcmp(name, "vprintf") == 0)
                signature->has_printf = true;
        if (symbol_is_device_runtime(name)) {
                signature->has_launches = true;
                signature->lacks_runtime |= symbol->st_shndx == SHN_UNDEF;
                return 0;
        }
        if (symbol->st_shndx == SHN_UNDEF)
                return 0;
        if (type == STT_FUNC && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
            (symbol->st_other & STO_ENTRY) && is_kernel(file, name))
                return signature_add_kernel(signature, name, strlen(name), NULL);
        if (type == STT_OBJECT && elf_file_section(file, symbol->st_shndx, &section) &&
            holds_variables(file, &section))
                return signature_add_variable(signature,
                                              &(SignatureVariable){
                                                      .name = name,
                                                      .n_name = strlen(name),
                                                      .has_value = section.sh_type != SHT_NOBITS,
                                                      .is_byte = symbol->st_size == 1,
                                              });
        return 0;
}

int cubin_scan(const void *image, size_t n_image, Signature *signature, unsigned *ret_sm) {
        ElfFile file;
        int r;

        r = elf_file_open(image, n_image, &file);
        if (r || file.header.e_machine != EM_CUDA_NUMBER)
                return CUBIN_E_BROKEN;

        r = elf_file_symbols(&file, SHT_SYMTAB, on_symbol, signature);
        if (r)
                return r < 0 ? r : CUBIN_E_BROKEN;

        *ret_sm = read_sm(&file);
        return 0;
}

bool cubin_runs_on(unsigned sm, unsigned device) {
        return sm / 10 == device / 10 && sm <= device;
}
