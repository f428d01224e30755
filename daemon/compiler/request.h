/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_REQUEST_H
#define GPUQ_COMPILER_REQUEST_H

/*
 * Request
 *
 * The request to gpuqd-compiler, from its command line or the words of a descriptor (compiler.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/format.h"
#include "util/macro.h"

typedef struct Request {
        unsigned sm; /* of the device; 0: the CPU driver */
        Format format;
        const char *libexec;
        const char *name;          /* for messages */
        const char *libraries;     /* folders to search first (open_library.h), or NULL */
        const char *cache;         /* of this user, or NULL */
        const char *builtin_cache; /* of gpuq's own kernels, for all users, or NULL */
        uint64_t cache_bytes;      /* that each folder may have */
        int in_fd;
        int out_fd;
        size_t length; /* 0: the whole file */
        unsigned timeout_s;
        unsigned memory_mib; /* of a compiler in this process (bound.h) */
        bool cuda_driver;
        int device;
        bool checked; /* accesses are compared (check.h) */
        bool fenced;  /* accesses stay within the launch's memory (fence.h) */
        bool plain;   /* no twins (batch.h): with them, the compiler crashed */
        const char *const *options;
        size_t n_options;
        const char **kernels; /* names of the client's; the result tells their symbols */
        size_t n_kernels;
        char *words; /* what the texts above point into, or NULL: the command line */
        char **argv; /* of words */
        char *image; /* a copy, as nobody else can change it, with a zero byte behind it */
        size_t n_image;
        char *headers; /* behind the image, in the same memory */
        size_t n_headers;
        char *work; /* a private folder for files on the way, or NULL */
} Request;

/**
 * request_new() - parse the command line
 *
 * @argv: kept by the caller
 *
 * Errors are printed to stderr. Return: 0, -EINVAL, or -ENOMEM.
 */
int request_new(int argc, char **argv, Request **ret_request);
/** request_free() - NULL is fine; leaves the work folder to request_clean(). Return: NULL. */
Request *request_free(Request *request);
DEFINE_CLEANUP(Request, request_free)

/** request_read() - read the image. Return: 0, -EFBIG, or another negative errno. */
int request_read(Request *request);
/** request_make_work() - make the work folder. Return: 0 or a negative errno. */
int request_make_work(Request *request);
/** request_clean() - remove the work folder and all in it. */
void request_clean(Request *request);
/** request_path() - DIR/NAME. Return: the caller's string, or NULL if there is no memory. */
char *request_path(const char *dir, const char *name);

#endif
