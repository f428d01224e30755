/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in kernels
 *
 * Compiled when gpuq was built: a shared object for the CPU driver, and PTX for GPUs. If nvcc was
 * available there is also a fatbin, which is used if PTX cannot be linked. builtin.txt describes
 * their arguments, one line per kernel, in the form of compiled.h's signature.
 */

#include <stdio.h>
#include <string.h>

#include "compiler/backend.h"
#include "compiler/fatbin.h"

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

/* Return: 0, BACKEND_E_MISSING, or a negative errno. */
static int take_cubin(const Request *request, Result *result) {
        _cleanup_(freep) char *fatbin = NULL;
        FatbinEntry entry;
        size_t n_fatbin;
        int r;

        r = read_kernels(request, "builtin.fatbin", &fatbin, &n_fatbin);
        if (r < 0)
                return r == -ENOENT ? BACKEND_E_MISSING : r;

        r = fatbin_find(fatbin, n_fatbin, request->sm, &entry);
        if (r || entry.compressed)
                return BACKEND_E_MISSING;
        return result_set_image(result, entry.data, entry.n_data);
}

static int find_for_gpu(const Request *request, Result *result) {
        _cleanup_(freep) char *ptx = NULL;
        size_t n_ptx;
        int r;

        r = read_kernels(request, "builtin.ptx", &ptx, &n_ptx);
        if (r < 0)
                return r;

        r = take_cubin(request, result);
        if (r < 0)
                return r;
        if (r == BACKEND_E_MISSING)
                return link_ptx(request, result, ptx, n_ptx);
        return MIN(link_twins(request, result, ptx, n_ptx), 0);
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
