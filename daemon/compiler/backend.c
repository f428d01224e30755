/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/backend.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compiler/compiler.h"
#include "compiler/instance.h"
#include "compiler/options.h"

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

        /* O_NONBLOCK: opening a FIFO must not wait for ever. What is not a file is rejected
         * below. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
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

static int close_file(FILE *f) {
        bool bad = ferror(f);

        if (fclose(f) != 0)
                return -errno;
        return bad ? -EIO : 0;
}

int backend_write_file(const char *path, const char *data, size_t n_data) {
        FILE *f = fopen(path, "we");

        if (!f)
                return -errno;

        fwrite(data, 1, n_data, f);
        return close_file(f);
}

/* "-DA=1" as "#define A 1"; like a compiler, 1 where no value is given. */
static void write_macro(FILE *f, const char *option) {
        size_t n_name = strcspn(option + 2, "=");
        const char *value = option[2 + n_name] ? option + 2 + n_name + 1 : "1";

        fprintf(f, "#undef %.*s\n", (int)n_name, option + 2);
        if (option[1] == 'D')
                fprintf(f, "#define %.*s %s\n", (int)n_name, option + 2, value);
}

static void write_name(FILE *f, const char *name) {
        fputs("#line 1 \"", f);
        for (; *name; name++) {
                if (*name == '"' || *name == '\\')
                        fputc('\\', f);
                fputc((unsigned char)*name < ' ' ? '?' : *name, f);
        }
        fputs("\"\n", f);
}

int backend_write_source(const Request *request, const char *path) {
        FILE *f = fopen(path, "we");

        if (!f)
                return -errno;

        for (size_t i = 0; i < request->n_options; i++)
                if (options_is_macro(request->options[i]))
                        write_macro(f, request->options[i]);
        write_name(f, request->name);
        fwrite(request->image, 1, request->n_image, f);
        if (request->format == FORMAT_SOURCE)
                instance_write(request, f);
        return close_file(f);
}
