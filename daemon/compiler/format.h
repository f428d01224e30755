/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_FORMAT_H
#define GPUQ_COMPILER_FORMAT_H

/*
 * Format
 *
 * Detects the format of an image by its first bytes. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

typedef enum Format {
        FORMAT_AUTO, /* the numbers are those of gpuq.v1.Format */
        FORMAT_SOURCE,
        FORMAT_PTX,
        FORMAT_CUBIN,
        FORMAT_FATBIN,
        FORMAT_BUILTIN,
        FORMAT_OPENCL,
        FORMAT_HOST_ELF, /* a program or library of the host: never a module */
        FORMAT_UNKNOWN,
} Format;

/** format_detect() - never FORMAT_AUTO, FORMAT_BUILTIN or FORMAT_OPENCL. */
Format format_detect(const void *image, size_t n_image);
/** format_is_source() - C++ or OpenCL C. */
static inline bool format_is_source(Format format) {
        return format == FORMAT_SOURCE || format == FORMAT_OPENCL;
}
/** format_name() - as --format takes it: "source"; "?" for what it does not take. */
const char *format_name(Format format);
/** format_parse() - the other way. Return: 0 or -EINVAL. */
int format_parse(const char *name, Format *ret_format);
/**
 * format_describe() - how an unknown image starts, for a message: `starts with 7f 45 "…"`
 * @text: room for it
 */
void format_describe(const void *image, size_t n_image, char *text, size_t n_text);

#endif
