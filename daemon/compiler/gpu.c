/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU
 *
 * Turns every format into a cubin for one device, and collects what the formats say about kernels.
 * Code that already runs on the device is not compiled again.
 */

#include <string.h>

#include "compiler/backend.h"
#include "compiler/cubin.h"
#include "compiler/fatbin.h"
#include "compiler/headers.h"
#include "compiler/opencl.h"
#include "compiler/ptx.h"

static void ptx_finish(Ptx *ptx) {
        free(ptx->text);
}

static int compile_with_headers(const Request *request, Result *result, Ptx *ret_ptx) {
        int r;

        if (request->format == FORMAT_OPENCL)
                return opencl_compile(request, result, ret_ptx);
        r = nvrtc_compile(request, result, ret_ptx);
        if (r == BACKEND_E_MISSING)
                r = clang_compile(request, result, ret_ptx);
        if (r == BACKEND_E_MISSING)
                return result_fail(result, COMPILED_NO_COMPILER,
                                   "cannot compile CUDA C++: no compiler found; install NVRTC "
                                   "(part of the CUDA Toolkit) or clang");
        return r;
}

int source_compile(const Request *request, Result *result, Ptx *ret_ptx) {
        int r;

        r = headers_write(request, result);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = compile_with_headers(request, result, ret_ptx);
        headers_clean_log(request, result->log);
        return r;
}

static int compile_source(const Request *request, Result *result) {
        _cleanup_(ptx_finish) Ptx ptx = {};
        int r;

        r = source_compile(request, result, &ptx);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = ptx_scan(ptx.text, ptx.n_text, result->signature);
        if (r < 0)
                return r;
        if (result->signature->is_opencl)
                opencl_hide_spaces(ptx.text, ptx.n_text);
        if (request->checked)
                return link_checked(request, result, ptx.text, ptx.n_text);
        if (request->fenced)
                return link_fenced(request, result, ptx.text, ptx.n_text);
        if (result->image)
                return MIN(link_twins(request, result, ptx.text, ptx.n_text), 0);
        return link_ptx(request, result, ptx.text, ptx.n_text);
}

/* PTX that no compiler of ours made. */
static int link_given(const Request *request, Result *result, const char *ptx, size_t n_ptx) {
        if (request->checked)
                return link_checked(request, result, ptx, n_ptx);
        return request->fenced ? link_fenced(request, result, ptx, n_ptx)
                               : link_ptx(request, result, ptx, n_ptx);
}

static int assemble(const Request *request, Result *result) {
        size_t n = strnlen(request->image, request->n_image);
        int r;

        r = ptx_scan(request->image, n, result->signature);
        if (r < 0)
                return r;
        return link_given(request, result, request->image, n);
}

static int take_cubin(const Request *request, Result *result, const void *image, size_t n_image) {
        unsigned sm = 0;
        int r;

        r = cubin_scan(image, n_image, result->signature, &sm);
        if (r == CUBIN_E_BROKEN)
                return result_fail(result, COMPILED_NOT_MODULE,
                                   "%s: the cubin is damaged: its tables are outside of the file",
                                   request->name);
        if (r < 0)
                return r;
        if (!cubin_runs_on(sm, request->sm))
                return result_fail(result, COMPILED_NO_BINARY,
                                   "%s was built for sm_%u, but this device is sm_%u: rebuild it "
                                   "for this device",
                                   request->name, sm, request->sm);

        if (result->signature->lacks_runtime)
                return link_image(request, result, FORMAT_CUBIN, image, n_image);
        return result_set_image(result, image, n_image);
}

/* Whether its PTX, if any, can be made to run on the device. */
static bool has_usable_ptx(const void *image, size_t n_image, unsigned sm) {
        size_t position = 0;
        FatbinEntry entry;

        while (fatbin_next(image, n_image, &position, &entry) == 0)
                if (entry.kind == FATBIN_PTX && entry.sm <= sm)
                        return true;

        return false;
}

/* Linking a fatbin does not describe its kernels, but the resulting cubin does. */
static int link_fatbin(const Request *request, Result *result, const void *image, size_t n_image) {
        unsigned sm;
        int r;

        r = link_image(request, result, FORMAT_FATBIN, image, n_image);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        r = cubin_scan(result->image, result->n_image, result->signature, &sm);
        return r == CUBIN_E_BROKEN
                       ? result_fail(result, COMPILED_INTERNAL, "the linker produced no cubin")
                       : r;
}

static int take_fatbin(const Request *request, Result *result, const void *image, size_t n_image) {
        char contents[256];
        FatbinEntry entry;
        int r;

        r = fatbin_find(image, n_image, request->sm, &entry);
        if (r == FATBIN_E_BROKEN)
                return result_fail(result, COMPILED_NOT_MODULE,
                                   "%s: the fatbin is damaged: an entry ends outside of the file",
                                   request->name);
        if (r == 0 && !entry.compressed)
                return take_cubin(request, result, entry.data, entry.n_data);
        if (r == 0 || has_usable_ptx(image, n_image, request->sm))
                return link_fatbin(request, result, image, n_image);

        fatbin_describe(image, n_image, contents, sizeof(contents));
        return result_fail(result, COMPILED_NO_BINARY,
                           "%s has code for %s, but this device is sm_%u", request->name, contents,
                           request->sm);
}

/* ---- checked and fenced --------------------------------------------------------------- */

static const char *who_needs_ptx(const Request *request) {
        return request->checked ? "a checked job" : "a gpuqd with fence = yes";
}

/* The newest PTX that can be made to run on the device. */
static bool find_ptx(const Request *request, FatbinEntry *ret_entry) {
        size_t position = 0;
        bool found = false;
        FatbinEntry entry;

        while (fatbin_next(request->image, request->n_image, &position, &entry) == 0)
                if (entry.kind == FATBIN_PTX && !entry.compressed && entry.sm <= request->sm &&
                    (!found || entry.sm > ret_entry->sm)) {
                        *ret_entry = entry;
                        found = true;
                }
        return found;
}

static int check_fatbin(const Request *request, Result *result) {
        FatbinEntry entry;
        size_t n;
        int r;

        if (!find_ptx(request, &entry))
                return result_fail(
                        result, COMPILED_NO_BINARY,
                        "%s has no PTX for this device that is not compressed, which %s needs: "
                        "pass source or PTX",
                        request->name, who_needs_ptx(request));

        n = strnlen(entry.data, entry.n_data);
        r = ptx_scan(entry.data, n, result->signature);
        return r < 0 ? r : link_given(request, result, entry.data, n);
}

static int check_binary(const Request *request, Result *result) {
        if (request->format == FORMAT_FATBIN)
                return check_fatbin(request, result);
        return result_fail(result, COMPILED_NO_BINARY,
                           "%s is a cubin, which has no PTX, and %s needs that: pass source or PTX",
                           request->name, who_needs_ptx(request));
}

int gpu_compile(const Request *request, Result *result) {
        if ((request->checked || request->fenced) &&
            (request->format == FORMAT_CUBIN || request->format == FORMAT_FATBIN))
                return check_binary(request, result);

        switch (request->format) {
                case FORMAT_SOURCE:
                case FORMAT_OPENCL:
                        return compile_source(request, result);
                case FORMAT_PTX:
                        return assemble(request, result);
                case FORMAT_CUBIN:
                        return take_cubin(request, result, request->image, request->n_image);
                case FORMAT_FATBIN:
                        return take_fatbin(request, result, request->image, request->n_image);
                default:
                        return -EINVAL;
        }
}
