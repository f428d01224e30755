/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/backend.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compiler/compiler.h"

/* Where the CUDA Toolkit lies when the loader's own search does not know it. */
static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/usr/lib/cuda/lib64/",
                                      "/opt/cuda/lib64/"};

void *backend_open_library(const char *const *names) {
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                for (const char *const *name = names; *name; name++) {
                        _cleanup_(freep) char *path = NULL;
                        void *library;

                        if (asprintf(&path, "%s%s", folders[i], *name) < 0)
                                return NULL;
                        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                        if (library)
                                return library;
                }
        }
        return NULL;
}

static int read_fd(int fd, char *data, size_t n_data) {
        for (size_t at = 0; at < n_data;) {
                ssize_t n = read(fd, data + at, n_data - at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
                at += n;
        }
        return 0;
}

int backend_read_file(const char *path, char **ret_data, size_t *ret_n_data) {
        _cleanup_(freep) char *data = NULL;
        _cleanup_(closep) int fd = -1;
        struct stat st;
        int r;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size > COMPILER_IMAGE_MAX)
                return -EFBIG;

        data = malloc(st.st_size + 1);
        if (!data)
                return -ENOMEM;

        r = read_fd(fd, data, st.st_size);
        if (r < 0)
                return r;

        data[st.st_size] = '\0';
        *ret_data = TAKE_PTR(data);
        *ret_n_data = st.st_size;
        return 0;
}
