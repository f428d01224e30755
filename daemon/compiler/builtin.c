/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in kernels
 *
 * Compiled when gpuq was built: a shared object for the CPU driver, and PTX for GPUs, by clang and, if it
 * was available, by nvcc. builtin.txt describes their arguments, one line per kernel, in the form of
 * compiled.h's signature.
 */

#include <stdio.h>
#include <string.h>

#include "compiler/backend.h"

static int read_kernels(const Request *request, const char *name, char **ret_data, size_t *ret_n) {
        _cleanup_(freep) char *file = NULL, *path = NULL;

        file = request_path("kernels", name);
        path = file ? request_path(request->libexec, file) : NULL;
        if (!path)
                return -ENOMEM;

        return backend_read_file(path, ret_data, ret_n);
}

/* KINDS <tab> SYMBOL <tab> NAME <tab> TEXT */
static int describe_one(Signature *signature, char *line) {
        char *kinds = strsep(&line, "\t"), *symbol = strsep(&line, "\t");
        int r;

        (void)strsep(&line, "\t");
        if (!line)
                return -EINVAL;

        r = signature_add_kernel(signature, symbol, strlen(symbol),
                                 strcmp(kinds, "-") == 0 ? "" : kinds);
        if (r < 0)
                return r;
        return signature_set_text(signature, symbol, line);
}

static int describe(const Request *request, Result *result) {
        _cleanup_(freep) char *text = NULL;
        char *rest, *line;
        size_t n_text;
        int r;

        r = read_kernels(request, "builtin.txt", &text, &n_text);
        if (r < 0)
                return r;

        rest = text;
        while ((line = strsep(&rest, "\n")) && *line) {
                r = describe_one(result->signature, line);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int find_for_cpu(const Request *request, Result *result) {
        char *image;
        size_t n_image;
        int r;

        r = read_kernels(request, "builtin.cpu.so", &image, &n_image);
        if (r < 0)
                return r;

        result->image = image;
        result->n_image = n_image;
        result->flags |= COMPILED_HAS_TWINS;
        return 0;
}

static int link_kernels(const Request *request, Result *result, const char *name) {
        _cleanup_(freep) char *ptx = NULL;
        size_t n_ptx;
        int r;

        r = read_kernels(request, name, &ptx, &n_ptx);
        return r < 0 ? r : link_ptx(request, result, ptx, n_ptx);
}

/* nvcc's PTX is faster, but may be too new for this machine's linker or for the device. A plain request comes after a
 * crash of the linker. */
static int find_for_gpu(const Request *request, Result *result) {
        bool may_pass;
        int r = -ENOENT;

        if (!request->plain)
                r = link_kernels(request, result, "builtin.nvcc.ptx");
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && result->status == COMPILED_OK)
                return 0;

        may_pass = result->status == COMPILED_INTERNAL;
        result_retry(result);
        r = link_kernels(request, result, "builtin.ptx");
        result->uncacheable |= may_pass;
        return r;
}

/* The checked kernels are made of the same PTX for every target. */
static int find_checked(const Request *request, Result *result) {
        _cleanup_(freep) char *text = NULL;
        size_t n_text;
        int r;

        r = read_kernels(request, "builtin.ptx", &text, &n_text);
        if (r < 0)
                return r;
        if (request->sm)
                return link_checked(request, result, text, n_text);

        r = cpu_compile_ptx(request, &(Ptx){text, n_text}, result);
        if (r < 0 || result->status != COMPILED_OK)
                return r;
        /* describe() says more than the PTX. */
        result->signature = signature_free(result->signature);
        return signature_new(&result->signature);
}

static int find(const Request *request, Result *result) {
        if (request->checked)
                return find_checked(request, result);
        return request->sm ? find_for_gpu(request, result) : find_for_cpu(request, result);
}

int builtin_find(const Request *request, Result *result) {
        int r;

        r = find(request, result);
        if (r == 0 && result->status == COMPILED_OK)
                r = describe(request, result);
        if (r < 0)
                return result_fail(result, COMPILED_INTERNAL,
                                   "the built-in kernels in %s/kernels: %s", request->libexec,
                                   strerror(-r));
        return 0;
}
