/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_FATBIN_H
#define GPUQ_COMPILER_FATBIN_H

/*
 * Fatbin
 *
 * Walks the entries of a fatbin: cubins and PTX for several devices. Pure; every length is
 * checked. Compressed entries are reported as such, and the linker unpacks them.
 */

#include <stdbool.h>
#include <stddef.h>

typedef enum FatbinKind {
        FATBIN_PTX = 1,
        FATBIN_CUBIN = 2,
} FatbinKind;

enum {
        _FATBIN_E_SUCCESS,
        FATBIN_E_END,    /* no more entries */
        FATBIN_E_BROKEN, /* not a fatbin, or cut short */
};

typedef struct FatbinEntry {
        FatbinKind kind; /* or another number */
        unsigned sm;
        bool compressed;
        const void *data; /* inside the image */
        size_t n_data;
} FatbinEntry;

/**
 * fatbin_next() - one entry after the other
 * @position: 0 at first; kept by the caller between calls
 *
 * Return: 0, FATBIN_E_END or FATBIN_E_BROKEN.
 */
int fatbin_next(const void *image, size_t n_image, size_t *position, FatbinEntry *ret_entry);
/**
 * fatbin_find() - the cubin that fits a device best
 *
 * Return: 0, FATBIN_E_END if none runs on it, or FATBIN_E_BROKEN.
 */
int fatbin_find(const void *image, size_t n_image, unsigned sm, FatbinEntry *ret_entry);
/**
 * fatbin_describe() - what is in it: "sm_80, sm_90, PTX for sm_90"
 * @text: room for it
 */
void fatbin_describe(const void *image, size_t n_image, char *text, size_t n_text);

#endif
