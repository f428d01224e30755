/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_COMPILED_H
#define GPUQ_COMPILER_COMPILED_H

/*
 * Compiled
 *
 * The result of gpuqd-compiler, as bytes and as a struct. A fixed header, then
 * six sections without gaps: the image, the log, the signature, the variables,
 * the symbols of the kernels that the request named, and the sites.
 * Pure. What is parsed is untrusted: a compiler is run on a client's behalf and
 * may have been taken over by what it compiled.
 *
 * The signature is one line a kernel, four fields between tabs:
 *
 *     KINDS <tab> SYMBOL <tab> NAME <tab> TEXT
 *
 * KINDS has one letter of "bpilfdcswm" a parameter, the proto's Kind 0 to 9; "-"
 * for a kernel without parameters, "?" where they are not known. SYMBOL is what
 * cuModuleGetFunction() takes; NAME what users say, which for a C++ kernel is
 * shorter ("f<float>" for "_Z1fIfEvPT_"). TEXT tells what a built-in computes; newlines
 * in it are written "\n". The variables are one name a line, and so are the symbols,
 * in the order of the request's names. The sites are those of a checked image,
 * as check.h says.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

enum {
        _COMPILED_E_SUCCESS,
        COMPILED_E_BROKEN, /* not a result of gpuqd-compiler, or cut short */
};

typedef enum CompiledStatus {
        COMPILED_OK,     /* there is an image */
        COMPILED_FAILED, /* the source or PTX does not compile; the log is the compiler's: E_COMPILE */
        COMPILED_NOT_MODULE, /* the log says what it is instead: E_IMAGE */
        COMPILED_NO_BINARY,  /* a module, but none for this device: E_IMAGE */
        COMPILED_BAD_OPTION, /* the log names it and what is allowed: E_INVALID */
        COMPILED_NO_COMPILER, /* nothing on this machine can compile it; the log says what to install: E_COMPILE */
        COMPILED_NO_KERNEL, /* none has a name of the request; the log says which there are: E_NOT_FOUND */
        COMPILED_INTERNAL, /* E_INTERNAL */
        _COMPILED_STATUS_N,
} CompiledStatus;

enum {
        COMPILED_HAS_VARIABLES =
                1 << 0, /* writable variables: each session needs an instance of its own */
        COMPILED_HAS_PRINTF = 1 << 1, /* its launches may fill the printf buffer */
        COMPILED_FROM_CACHE = 1 << 2,
        COMPILED_HAS_TWINS = 1 << 3,  /* kernels named as batch.h says are ours, not the user's */
        COMPILED_IS_CHECKED = 1 << 4, /* its kernels compare their accesses (check.h) */
        COMPILED_IS_FENCED =
                1 << 5, /* its kernels take a fence as their last parameter (fence.h) */
        COMPILED_HAS_LAUNCHES = 1 << 6, /* its kernels may launch kernels (device_runtime.h) */
        _COMPILED_FLAGS = 127,
};

typedef struct CompiledKernel {
        const char *symbol;   /* for cuModuleGetFunction() */
        const char *name;     /* for users; the same as symbol unless that is a mangled name */
        const char *text;     /* or "" */
        const uint8_t *kinds; /* gpuq.v1.Kind, one a parameter */
        size_t n_kinds;
        bool kinds_known;
} CompiledKernel;

typedef struct Compiled {
        CompiledStatus status;
        uint32_t flags;
        const void *image; /* inside the data that was parsed */
        size_t n_image;
        const char *log; /* never NULL; valid UTF-8 is not promised */
        CompiledKernel *kernels;
        size_t n_kernels;
        const char **variables;
        size_t n_variables;
        const char **named; /* symbols, one for each name of the request */
        size_t n_named;
        const char *sites; /* never NULL */
        char *strings;     /* what the names above point into */
        uint8_t *kinds;
} Compiled;

/**
 * compiled_parse() - check and take apart what was written to --out
 * @data: kept by the caller as long as the result's image is used. Of a memfd take
 *        a copy, or seal it against writing first: a process may still hold it.
 *
 * Return: 0, COMPILED_E_BROKEN, or -ENOMEM.
 */
int compiled_parse(const void *data, size_t n_data, Compiled **ret_compiled);
/** compiled_free() - NULL is fine. Return: NULL. */
Compiled *compiled_free(Compiled *compiled);
DEFINE_CLEANUP(Compiled, compiled_free)

/** compiled_status_name() - "compile error" for COMPILED_FAILED. Never NULL. */
const char *compiled_status_name(CompiledStatus status);

/* ---- the other way, for gpuqd-compiler ------------------------------------- */

#define COMPILED_HEADER_BYTES 72u
#define COMPILED_FLAGS_OFFSET 12u

typedef struct CompiledSections {
        CompiledStatus status;
        uint32_t flags;
        const void *image;
        size_t n_image;
        const char *log; /* NULL counts as "" */
        size_t n_log;
        const char *signature;
        size_t n_signature;
        const char *variables;
        size_t n_variables;
        const char *named;
        size_t n_named;
        const char *sites;
        size_t n_sites;
} CompiledSections;

/** compiled_pack() - the bytes of a result. @ret_data: the caller's to free. Return: 0 or -ENOMEM. */
int compiled_pack(const CompiledSections *sections, void **ret_data, size_t *ret_n_data);
/** compiled_letter() - of a gpuq.v1.Kind, for a signature. */
char compiled_letter(unsigned kind);

#endif
