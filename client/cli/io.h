/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_IO_H
#define GPUQ_CLI_IO_H

/*
 * Whole reads, and files that appear whole or not at all.
 */

#include <stddef.h>

#include "problem.h"

/** io_read() - up to @n_data bytes, fewer only at the end. Return: 0 or a negative errno. */
int io_read(int fd, void *data, size_t n_data, size_t *ret_n_read);
/** io_read_file() - a whole file; the bytes are the caller's to free. Return: 0 or a negative errno. */
int io_read_file(const char *path, void **ret_data, size_t *ret_n_data);

/*
 * OutFile: written beside its place under another name, then renamed. What is
 * not a regular file (a pipe, /dev/null) is written directly.
 */
typedef struct OutFile OutFile;

/** outfile_check() - whether a file could be written there. Return: 0 or a negative errno. */
int outfile_check(const char *path);
/** outfile_new() - open it. An existing file's permissions are kept; a link is followed. Return: 0 or a negative errno. */
int outfile_new(const char *path, OutFile **ret_file);
/** outfile_fd() - to write to. */
int outfile_fd(const OutFile *file);
/** outfile_commit() - give it its name. Return: 0 or a negative errno. */
int outfile_commit(OutFile *file);
/** outfile_free() - remove it unless committed; NULL is fine. Return: NULL. */
OutFile *outfile_free(OutFile *file);

DEFINE_CLEANUP(OutFile, outfile_free)

#endif
