/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fatbin
 *
 * A header of 16 bytes, then entries. Each entry has a header with its own length and that of the
 * data after it. Every toolkit from CUDA 4 to 13 writes this layout.
 */

#include "compiler/fatbin.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "compiler/cubin.h"

#define FATBIN_MAGIC         0xba55ed50u
#define FLAG_COMPRESSED_LZ4  (1u << 13)
#define FLAG_COMPRESSED_ZSTD (1u << 15)

typedef struct Header {
        uint32_t magic;
        uint16_t version;
        uint16_t n_header;
        uint64_t n_entries; /* bytes behind the header */
} Header;

typedef struct EntryHeader {
        uint16_t kind;
        uint16_t version;
        uint32_t n_header;
        uint64_t n_data; /* behind this header, padding included */
        uint32_t n_compressed;
        uint32_t options_offset;
        uint16_t minor;
        uint16_t major;
        uint32_t sm;
        uint32_t name_offset;
        uint32_t n_name;
        uint64_t flags;
} EntryHeader;

static int first_entry(const void *image, size_t n_image, size_t *ret_position) {
        Header header;

        if (n_image < sizeof(header))
                return FATBIN_E_BROKEN;

        memcpy(&header, image, sizeof(header));
        if (header.magic != FATBIN_MAGIC || header.n_header < sizeof(header) ||
            header.n_header > n_image || header.n_entries > n_image - header.n_header)
                return FATBIN_E_BROKEN;

        *ret_position = header.n_header;
        return 0;
}

int fatbin_next(const void *image, size_t n_image, size_t *position, FatbinEntry *ret_entry) {
        EntryHeader entry;
        size_t left;
        int r;

        if (*position == 0) {
                r = first_entry(image, n_image, position);
                if (r)
                        return r;
        }
        if (*position >= n_image)
                return FATBIN_E_END;

        left = n_image - *position;
        if (left < sizeof(entry))
                return FATBIN_E_BROKEN;

        memcpy(&entry, (const char *)image + *position, sizeof(entry));
        if (entry.n_header < sizeof(entry) || entry.n_header > left ||
            entry.n_data > left - entry.n_header)
                return FATBIN_E_BROKEN;

        *ret_entry = (FatbinEntry){
                .kind = entry.kind,
                .sm = entry.sm,
                .compressed = entry.flags & (FLAG_COMPRESSED_LZ4 | FLAG_COMPRESSED_ZSTD),
                .data = (const char *)image + *position + entry.n_header,
                .n_data = entry.n_data,
        };
        *position += entry.n_header + entry.n_data;
        return 0;
}

int fatbin_find(const void *image, size_t n_image, unsigned sm, FatbinEntry *ret_entry) {
        FatbinEntry entry, best = {};
        size_t position = 0;
        int r;

        while ((r = fatbin_next(image, n_image, &position, &entry)) == 0)
                if (entry.kind == FATBIN_CUBIN && cubin_runs_on(entry.sm, sm) && entry.sm > best.sm)
                        best = entry;

        if (r == FATBIN_E_BROKEN)
                return r;
        if (!best.data)
                return FATBIN_E_END;

        *ret_entry = best;
        return 0;
}

void fatbin_describe(const void *image, size_t n_image, char *text, size_t n_text) {
        size_t position = 0, at = 0;
        FatbinEntry entry;

        snprintf(text, n_text, "nothing");
        while (fatbin_next(image, n_image, &position, &entry) == 0 && at < n_text)
                at += snprintf(text + at, n_text - at, "%s%ssm_%u", at ? ", " : "",
                               entry.kind == FATBIN_PTX ? "PTX for " : "", entry.sm);
}
