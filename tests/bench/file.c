/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whole files: kernels' images, as they are on disk.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

static char *file_read(FILE *file, size_t *ret_n) {
        char *data;
        long size;

        if (fseek(file, 0, SEEK_END) < 0 || (size = ftell(file)) < 0)
                return NULL;
        rewind(file);

        data = calloc(1, (size_t)size + 1);
        if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
                free(data);
                return NULL;
        }
        if (ret_n)
                *ret_n = (size_t)size;
        return data;
}

void *bench_file(const char *folder, const char *name, size_t *ret_n) {
        char path[4096];
        void *data;
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "rb");
        if (!file)
                return NULL;

        data = file_read(file, ret_n);
        fclose(file);
        return data;
}
