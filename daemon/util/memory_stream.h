/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_MEMORY_STREAM_H
#define GPUQ_UTIL_MEMORY_STREAM_H

/*
 * Memory stream
 *
 * As open_memstream(), for text that is worse cut than missing: with glibc's a write for which there is no memory
 * leaves no trace, neither by ferror() nor by fclose().
 */

#include <stddef.h>
#include <stdio.h>

/**
 * memory_stream_open()
 * @ret_data, @ret_n_data: what was written up to the last flush or the end, with a NUL behind it; malloc()ed and the
 *      caller's, also if this fails
 *
 * Return: a stream to write to; NULL: there is no memory.
 */
FILE *memory_stream_open(char **ret_data, size_t *ret_n_data);
/** memory_stream_flush() - bring the data up to date. Return: 0, or -ENOMEM if anything is missing. */
int memory_stream_flush(FILE *stream);
/** memory_stream_close() - the same, and end it. Return: as memory_stream_flush(). */
int memory_stream_close(FILE *stream);

#endif
