/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open a library
 */
#include "util/open_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

/* Where the CUDA Toolkit is installed if the loader does not find it. */
static const char *const toolkits[] = {"", "/usr/local/cuda/lib64/", "/usr/lib/cuda/lib64/",
                                       "/opt/cuda/lib64/"};

static void *open_in(const char *folder, size_t n_folder, const char *const *names) {
        for (; *names; names++) {
                _cleanup_(freep) char *path = NULL;
                void *library;

                if (asprintf(&path, "%.*s%s%s", (int)n_folder, folder,
                             n_folder > 0 && folder[n_folder - 1] != '/' ? "/" : "", *names) < 0)
                        return NULL;
                library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                if (library)
                        return library;
        }
        return NULL;
}

void *open_library(const char *folders, const char *const *names) {
        void *library = NULL;

        while (!library && folders && *folders) {
                size_t n = strcspn(folders, ":");

                if (n > 0)
                        library = open_in(folders, n, names);
                folders += n + (folders[n] == ':');
        }
        for (size_t i = 0; !library && i < ARRAY_SIZE(toolkits); i++)
                library = open_in(toolkits[i], strlen(toolkits[i]), names);
        return library;
}
