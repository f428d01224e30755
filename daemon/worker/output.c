/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output
 *
 * The memfds have their full size from the start and are sealed against growing: output beyond it is lost.
 * The file offset, which all duplicates of a descriptor share, is the amount of output.
 */
#include "worker/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/mman.h>

#include "util/macro.h"
#include "util/write_all.h"
#include "worker/failure.h"

#define OUTPUT_CUT "\n[output truncated: only the first MiB is kept]\n"

static int output_memfd(const char *name, int *ret_fd) {
        _cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        if (ftruncate(fd, OUTPUT_MAX) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
                return -errno;

        *ret_fd = TAKE_FD(fd);
        return 0;
}

int output_open(Output *output) {
        _cleanup_(closep) int out = -1, err = -1, was = -1;
        int r;

        r = output_memfd("gpuq-stdout", &out);
        if (r < 0)
                return r;
        r = output_memfd("gpuq-stderr", &err);
        if (r < 0)
                return r;

        was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
        if (was < 0 && errno != EBADF)
                return -errno;
        if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
                return -errno;

        output->out = TAKE_FD(out);
        output->err = TAKE_FD(err);
        output->stderr_was = TAKE_FD(was);
        return 0;
}

/* The output since the last call; the descriptor is empty afterwards. */
static int output_read(int fd, char **ret_text) {
        off_t end = lseek(fd, 0, SEEK_CUR);
        char *text;
        ssize_t n;

        if (end <= 0) {
                *ret_text = NULL;
                return 0;
        }

        text = malloc((size_t)end + sizeof(OUTPUT_CUT));
        if (!text)
                return -ENOMEM;
        n = pread(fd, text, (size_t)end, 0);
        text[n > 0 ? n : 0] = '\0';
        lseek(fd, 0, SEEK_SET);

        *ret_text = text;
        return 0;
}

int output_take(Output *output, char **ret_text) {
        bool cut = fflush(stdout) != 0 || ferror(stdout);
        char *text;
        int r;

        /* Bytes that could not be forwarded would come with the next job. */
        __fpurge(stdout);
        clearerr(stdout);

        r = output_read(output->out, &text);
        if (r < 0)
                return r;
        if (text)
                text_clean(text);
        if (text && (cut || strlen(text) >= OUTPUT_MAX))
                strcat(text, OUTPUT_CUT);

        *ret_text = text;
        return 0;
}

int output_take_errors(Output *output, char **ret_text) {
        char *text;
        int r;

        fflush(stderr);
        r = output_read(output->err, &text);
        if (r < 0)
                return r;

        *ret_text = text ? text_clean(text) : NULL;
        return 0;
}

void output_forward(Output *output) {
        _cleanup_(freep) char *text = NULL;

        if (output_take_errors(output, &text) < 0 || !text || output->stderr_was < 0)
                return;

        (void)write_all(output->stderr_was, text, strlen(text), WRITE_ALL_ON);
}
