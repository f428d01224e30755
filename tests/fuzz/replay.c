/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libFuzzer does with files alone, for builds without it: each is one run. So what was once
 * found stays found by every compiler and sanitizer, and AFL++ may drive the same targets.
 *
 *     fuzz-NAME FILE|FOLDER...
 */

#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "input.h"

#define REPLAY_BYTES_MAX (1u << 20)

static void replay_file(const char *path) {
        FILE *file = fopen(path, "re");
        uint8_t *data = malloc(REPLAY_BYTES_MAX);
        size_t n;

        if (!file || !data)
                err(1, "%s", path);
        n = fread(data, 1, REPLAY_BYTES_MAX, file);
        fclose(file);
        data = realloc(data, n + !n); /* what is behind it is not to be read */
        LLVMFuzzerTestOneInput(data, n);
        free(data);
}

static int replay_is_visible(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

static void replay_folder(const char *path) {
        struct dirent **entries;
        char *inside;
        int n = scandir(path, &entries, replay_is_visible, alphasort);

        if (n < 0)
                err(1, "%s", path);
        for (int i = 0; i < n; ++i) {
                if (asprintf(&inside, "%s/%s", path, entries[i]->d_name) < 0)
                        abort();
                replay_file(inside);
                free(inside);
                free(entries[i]);
        }
        free(entries);
        printf("%s: %d runs\n", path, n);
}

int main(int argc, char **argv) {
        struct stat st;

        for (int i = 1; i < argc; ++i) {
                if (stat(argv[i], &st) < 0)
                        err(1, "%s", argv[i]);
                if (S_ISDIR(st.st_mode))
                        replay_folder(argv[i]);
                else
                        replay_file(argv[i]);
        }
        return 0;
}
