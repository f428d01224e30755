/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "util/write_all.h"

static const char npy_magic[] = "\x93NUMPY";
#define NPY_MAGIC_BYTES (sizeof(npy_magic) - 1)
#define NPY_ALIGNMENT   64 /* of the data in the file, as numpy does, so that it can be mapped */

static int npy_failed(Problem *problem, const char *name, int r) {
        return problem_set(problem, r, "%s: cannot read: %s", name, strerror(-r));
}

static int npy_cut_short(Problem *problem, const char *name) {
        return problem_set(problem, -EINVAL, "%s: not an NPY file, or its header is truncated",
                           name);
}

/* As io_read(), but all bytes must be there. */
static int npy_read_whole(int fd, const char *name, void *data, size_t n_data, Problem *problem) {
        size_t n_read = 0;
        int r;

        r = io_read(fd, data, n_data, &n_read);
        if (r < 0)
                return npy_failed(problem, name, r);
        return n_read < n_data ? npy_cut_short(problem, name) : 0;
}

/* What precedes the dictionary: magic, version, and the dictionary's length in 2 or 4 bytes. */
static int npy_read_prefix(int fd, const char *name, Problem *problem, uint32_t *ret_length,
                           size_t *ret_n_prefix) {
        uint8_t prefix[12];
        size_t n_length;
        int r;

        r = npy_read_whole(fd, name, prefix, 8, problem);
        if (r < 0)
                return r;
        if (memcmp(prefix, npy_magic, NPY_MAGIC_BYTES) != 0)
                return problem_set(problem, -EINVAL,
                                   "%s: not an NPY file: it does not start with \\x93NUMPY", name);
        if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
                return problem_set(problem, -EINVAL,
                                   "%s: unsupported NPY version %u.%u; expected 1.0, 2.0 or 3.0",
                                   name, prefix[6], prefix[7]);

        n_length = prefix[6] == 1 ? 2 : 4;
        r = npy_read_whole(fd, name, prefix + 8, n_length, problem);
        if (r < 0)
                return r;

        *ret_length = prefix[8] | (uint32_t)prefix[9] << 8;
        if (n_length == 4)
                *ret_length |= (uint32_t)prefix[10] << 16 | (uint32_t)prefix[11] << 24;
        *ret_n_prefix = 8 + n_length;
        return 0;
}

static int npy_wrong_size(Problem *problem, const char *name, const NpyArray *array,
                          uint64_t n_found) {
        return problem_set(problem, -EINVAL,
                           "%s: the file is %s: it holds %" PRIu64
                           " bytes of data, but its header declares %" PRIu64,
                           name, n_found < array->n_bytes ? "too short" : "too long", n_found,
                           array->n_bytes);
}

/* Checked before memory is allocated, because a header may declare any size. */
static int npy_check_size(int fd, const char *name, const NpyArray *array, size_t n_header,
                          Problem *problem) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return npy_failed(problem, name, -errno);
        if (!S_ISREG(st.st_mode))
                return 0;

        if ((uint64_t)st.st_size != n_header + array->n_bytes)
                return npy_wrong_size(problem, name, array, (uint64_t)st.st_size - n_header);
        return 0;
}

int npy_read_header(int fd, const char *name, Problem *problem, NpyArray *ret_array) {
        _cleanup_(freep) char *text = NULL;
        NpyArray array;
        uint32_t length = 0;
        size_t n_prefix = 0;
        int r;

        r = npy_read_prefix(fd, name, problem, &length, &n_prefix);
        if (r < 0)
                return r;
        if (length > NPY_HEADER_MAX)
                return problem_set(problem, -EINVAL,
                                   "%s: the NPY header has %" PRIu32 " bytes; the limit is %u",
                                   name, length, NPY_HEADER_MAX);

        text = malloc(length + 1);
        if (!text)
                return npy_failed(problem, name, -ENOMEM);
        r = npy_read_whole(fd, name, text, length, problem);
        if (r < 0)
                return r;
        r = npy_parse_header(text, length, name, problem, &array);
        if (r < 0)
                return r;
        r = npy_check_size(fd, name, &array, n_prefix + length, problem);
        if (r < 0)
                return r;

        *ret_array = array;
        return 0;
}

int npy_read_data(int fd, const char *name, const NpyArray *array, void *data, Problem *problem) {
        size_t n_read = 0, n_more = 0;
        char more;
        int r;

        r = io_read(fd, data, array->n_bytes, &n_read);
        if (r < 0)
                return npy_failed(problem, name, r);
        if (n_read < array->n_bytes)
                return npy_wrong_size(problem, name, array, n_read);

        r = io_read(fd, &more, 1, &n_more);
        if (r < 0)
                return npy_failed(problem, name, r);
        return n_more ? npy_wrong_size(problem, name, array, n_read + n_more) : 0;
}

static int npy_format_dictionary(FILE *stream, const NpyArray *array) {
        char descr[8];

        dtype_descr(array->dtype, descr);
        fprintf(stream, "{'descr': '%s', 'fortran_order': %s, 'shape': (", descr,
                array->fortran_order ? "True" : "False");
        for (unsigned i = 0; i < array->n_dims; i++)
                fprintf(stream, "%s%" PRIu64 "%s", i ? " " : "", array->shape[i],
                        i + 1 < array->n_dims || array->n_dims == 1 ? "," : "");
        return fprintf(stream, "), }") < 0 ? -errno : 0;
}

/* 64 lengths of 20 digits stay far below the 65,535 bytes of version 1.0. */
static int npy_format_header(const NpyArray *array, char **ret_header, size_t *ret_n_header) {
        _cleanup_(freep) char *header = NULL;
        size_t n_header = 0, length;
        FILE *stream;
        int r;

        stream = open_memstream(&header, &n_header);
        if (!stream)
                return -errno;
        fwrite(npy_magic, 1, NPY_MAGIC_BYTES, stream);
        fwrite("\x01\x00\x00\x00", 1, 4, stream);
        r = npy_format_dictionary(stream, array);
        length = (size_t)ftell(stream) + 1;
        while (length++ % NPY_ALIGNMENT)
                fputc(' ', stream);
        fputc('\n', stream);
        if (fclose(stream) != 0 || r < 0)
                return -ENOMEM;

        length = n_header - NPY_MAGIC_BYTES - 4;
        header[8] = (char)(length & 0xff);
        header[9] = (char)(length >> 8);
        *ret_header = TAKE_PTR(header);
        *ret_n_header = n_header;
        return 0;
}

int npy_write(int fd, const NpyArray *array, const void *data) {
        _cleanup_(freep) char *header = NULL;
        size_t n_header = 0;
        int r;

        r = npy_format_header(array, &header, &n_header);
        if (r < 0)
                return r;
        r = write_all(fd, header, n_header, WRITE_ALL_ON);
        if (r < 0)
                return r;
        return write_all(fd, data, array->n_bytes, WRITE_ALL_ON);
}
