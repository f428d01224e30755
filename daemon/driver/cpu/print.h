/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PRINT_H
#define GPUQ_CPU_PRINT_H

/*
 * Print
 *
 * The buffered output of kernels. It goes to stdout when a stream or
 * the context is synchronised, a module is loaded or unloaded, or the context
 * ends. When the buffer is full, the oldest output is lost.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Print Print;

/** print_new() - Return: NULL if there is no memory. */
Print *print_new(size_t n_bytes);
/** print_free() - NULL is fine. Return: NULL. */
Print *print_free(Print *print);
/** print_resize() - drops the buffered output. Return: false if there is no memory. */
bool print_resize(Print *print, size_t n_bytes);
/** print_add() - safe from any thread; a text stays in one piece. */
void print_add(Print *print, const char *format, va_list arguments);
/** print_flush() - to stdout. */
void print_flush(Print *print);

#endif
