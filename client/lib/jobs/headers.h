/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_HEADERS_H
#define GPUQ_JOBS_HEADERS_H

/*
 * Headers
 *
 * The header files that a source needs and the daemon cannot read: those that the caller gave as
 * texts, and those that the source, or a header, includes from the folders of -I options. They are
 * collected in the form in which they follow the image (ModuleLoad.header_bytes). Files that are
 * not found are left to the compiler, which has its own.
 */

#include <stddef.h>

#include <gpuq.h>

#include "util/macro.h"

typedef struct Headers {
        char **options; /* for the daemon, as spelling_take() gives them, NULL-terminated; folders are the headers' */
        size_t n_options;
        char *bytes; /* each header's name, a NUL, its text, a NUL */
        size_t n_bytes;
        char *notes; /* for the user, lines about folders that do not exist; NULL: there are none */
} Headers;

/**
 * headers_collect() - read what a source needs
 * @ret_headers: to be cleared with headers_clear(), also after an error
 *
 * Return: 0, GPUQ_E_INVALID or GPUQ_E_SYSTEM.
 */
int headers_collect(const gpuq_code *code, Headers *ret_headers);
/** headers_clear() - free what it owns. */
void headers_clear(Headers *headers);

#endif
