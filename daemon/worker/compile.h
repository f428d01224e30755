/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_COMPILE_H
#define GPUQ_WORKER_COMPILE_H

/*
 * Compile
 *
 * One run of gpuqd-compiler: a child in its own process group, with a kill timer. Compilers holds
 * running and waiting runs, because a hundred clients with a module each would otherwise start a
 * hundred compilers.
 */

#include <sys/queue.h>

#include <uv.h>

#include "compiler/compiled.h"
#include "worker/failure.h"

typedef struct CompilerSettings {
        const char *libexec;       /* the folder of the compiler and of kernels/ */
        const char *target;        /* "sm_90", "cpu" */
        const char *cache;         /* a folder of the user's, or NULL */
        const char *builtin_cache; /* a folder of gpuqd's, for the built-in kernels, or NULL */
        const char *libraries; /* folders where NVRTC and nvJitLink are looked for first, or NULL */
        uint64_t cache_bytes;  /* that each may have */
        unsigned timeout_s;    /* 0: none */
        unsigned device;
        bool fence; /* of all but the built-in kernels (compiler/fence.h) */
} CompilerSettings;

typedef struct CompileRequest {
        Gpuq__V1__Format format;
        int fd; /* of the image, consumed on success; -1 for BUILTIN */
        uint64_t length;
        const char *name;
        char *const *options;
        size_t n_options;
        char *const *kernels; /* that the client names */
        size_t n_kernels;
        const char *headers; /* how many bytes of them are behind the image; NULL: none */
} CompileRequest;

typedef struct Compile Compile;
TAILQ_HEAD(CompileList, Compile);

typedef struct Compilers {
        uv_loop_t *loop;
        CompilerSettings settings;
        unsigned n_max;
        unsigned n_running;
        struct CompileList running, waiting;
} Compilers;

/*
 * Called once, unless cancelled. @compiled has status COMPILED_OK and is the
 * callee's with @data; or it is NULL and @failure says why.
 */
typedef void (*CompileFunc)(void *userdata, Compiled *compiled, void *data, const Failure *failure);

/** compilers_init() - @settings is copied, its strings borrowed. */
void compilers_init(Compilers *compilers, uv_loop_t *loop, const CompilerSettings *settings);
/** compilers_kill() - kill all children at once; no callback follows. */
void compilers_kill(Compilers *compilers);

/**
 * compile_start() - start now, or when another run has ended
 * @ret_compile: for compile_cancel() until the callback, which may come before this function
 * returns
 *
 * Return: 0 or a negative errno.
 */
int compile_start(Compilers *compilers, const CompileRequest *request, CompileFunc func,
                  void *userdata, Compile **ret_compile);
/** compile_cancel() - the result is not wanted; NULL is fine. Return: NULL. */
Compile *compile_cancel(Compile *compile);

#endif
