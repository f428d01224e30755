/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_HEADERS_H
#define GPUQ_COMPILER_HEADERS_H

/*
 * Headers
 *
 * Header files that a client sent with its source. They are written into a folder of the work
 * folder, where both compilers look for what the source includes: so the rules for finding a file
 * are the compilers' own, and no file of the client is read here. A name is a relative path. What
 * begins with "@/" is a path of the client: "@/home/me/a.h" stands for "/home/me/a.h".
 */

#include "compiler/request.h"
#include "compiler/result.h"

/** headers_write() - write them, or end with COMPILED_BAD_OPTION. Return: 0 or a negative errno. */
int headers_write(const Request *request, Result *result);
/**
 * headers_options() - options for a compiler, such as "-IFOLDER/@/usr/include"
 * @ret_options: the caller's to free with headers_free_options(); NULL-terminated, empty without headers
 *
 * Return: 0 or -ENOMEM.
 */
int headers_options(const Request *request, char ***ret_options);
/** headers_free_options() - Return: NULL. */
char **headers_free_options(char **options);
DEFINE_CLEANUP(char *, headers_free_options)
/** headers_clean_log() - give the files in a compiler's messages the client's names again, in place. */
void headers_clean_log(const Request *request, char *log);
/** headers_has() - whether a file that is included as @name, of @n_name bytes, was sent. */
bool headers_has(const Request *request, const char *name, size_t n_name);

#endif
