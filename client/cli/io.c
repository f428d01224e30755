/* SPDX-License-Identifier: Apache-2.0 */
#include "io.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IO_CHUNK (256u << 20) /* Linux moves at most 2 GiB a call */

struct OutFile {
        int fd;
        char *path;      /* its place, links followed */
        char *temporary; /* NULL: written directly, or committed */
};

int io_read(int fd, void *data, size_t n_data, size_t *ret_n_read) {
        size_t n_read = 0;

        while (n_read < n_data) {
                ssize_t n = read(fd, (char *)data + n_read, MIN(n_data - n_read, IO_CHUNK));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                n_read += (size_t)n;
        }

        *ret_n_read = n_read;
        return 0;
}

/* Grows as it reads: what /proc and pipes hold has no size. */
int io_read_file(const char *path, void **ret_data, size_t *ret_n_data) {
        _cleanup_(closep) int fd = -1;
        _cleanup_(freep) char *data = NULL;
        size_t n_data = 0, n_read, size = 64 << 10;
        int r;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        do {
                char *grown = realloc(data, size *= 2);

                if (!grown)
                        return -ENOMEM;
                data = grown;
                r = io_read(fd, data + n_data, size - n_data, &n_read);
                if (r < 0)
                        return r;
                n_data += n_read;
        } while (n_data == size);

        *ret_data = TAKE_PTR(data);
        *ret_n_data = n_data;
        return 0;
}

/* dirname() and basename() may write into their argument; so each gets a copy. */
static int path_temporary(const char *path, char **ret_temporary) {
        _cleanup_(freep) char *for_folder = strdup(path), *for_name = strdup(path);

        if (!for_folder || !for_name)
                return -ENOMEM;
        if (asprintf(ret_temporary, "%s/.%s.XXXXXX", dirname(for_folder), basename(for_name)) < 0)
                return -ENOMEM;
        return 0;
}

int outfile_check(const char *path) {
        _cleanup_(freep) char *copy = strdup(path);
        struct stat st;

        if (!copy)
                return -ENOMEM;
        if (stat(path, &st) == 0) {
                if (S_ISDIR(st.st_mode))
                        return -EISDIR;
                if (!S_ISREG(st.st_mode))
                        return access(path, W_OK) < 0 ? -errno : 0;
        } else if (errno != ENOENT) {
                return -errno;
        }
        return access(dirname(copy), W_OK | X_OK) < 0 ? -errno : 0;
}

/* umask() can only be read by setting it. No other thread creates files. */
static mode_t file_mode_default(void) {
        mode_t mask = umask(0);

        umask(mask);
        return 0666 & ~mask;
}

static int outfile_open_beside(OutFile *file, mode_t mode) {
        _cleanup_(freep) char *temporary = NULL;
        int r;

        r = path_temporary(file->path, &temporary);
        if (r < 0)
                return r;
        file->fd = mkostemp(temporary, O_CLOEXEC);
        if (file->fd < 0)
                return -errno;

        file->temporary = TAKE_PTR(temporary);
        return fchmod(file->fd, mode) < 0 ? -errno : 0;
}

static int outfile_open(OutFile *file, const char *path) {
        struct stat st;

        file->path = realpath(path, NULL);
        if (!file->path && errno != ENOENT)
                return -errno;
        if (!file->path) {
                file->path = strdup(path);
                return file->path ? outfile_open_beside(file, file_mode_default()) : -ENOMEM;
        }

        if (stat(file->path, &st) < 0)
                return -errno;
        if (S_ISREG(st.st_mode))
                return outfile_open_beside(file, st.st_mode & 07777);

        file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
        return file->fd < 0 ? -errno : 0;
}

int outfile_new(const char *path, OutFile **ret_file) {
        _cleanup_(outfile_freep) OutFile *file = NULL;
        int r;

        file = calloc(1, sizeof(*file));
        if (!file)
                return -ENOMEM;
        file->fd = -1;

        r = outfile_open(file, path);
        if (r < 0)
                return r;

        *ret_file = TAKE_PTR(file);
        return 0;
}

int outfile_fd(const OutFile *file) {
        return file->fd;
}

int outfile_commit(OutFile *file) {
        int fd = TAKE_FD(file->fd);

        /* Some file systems report a full disk only here. */
        if (fd >= 0 && close(fd) < 0)
                return -errno;
        if (!file->temporary)
                return 0;
        if (rename(file->temporary, file->path) < 0)
                return -errno;

        freep(&file->temporary);
        file->temporary = NULL;
        return 0;
}

OutFile *outfile_free(OutFile *file) {
        if (!file)
                return NULL;

        if (file->temporary)
                unlink(file->temporary);
        closep(&file->fd);
        free(file->temporary);
        free(file->path);
        free(file);
        return NULL;
}
