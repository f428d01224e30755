/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fenced images for GPUs, and the rewrite that those for the CPU driver begin with.
 */
#include <string.h>

#include "compiler/backend.h"
#include "compiler/device_runtime.h"

int fence_ptx(const Request *request, Result *result, const char *ptx, size_t n_ptx,
              Fenced *ret_fenced) {
        _cleanup_(freep) char *error = NULL, *call = NULL;
        int r;

        call = device_runtime_call(ptx, n_ptx);
        if (call)
                return result_fail(result, COMPILED_FAILED,
                                   "%s cannot run with fence = yes, as gpuqd is configured: %s, "
                                   "and the fence keeps only the kernels of a job to its memory",
                                   request->name, call);
        r = fence_rewrite(ptx, n_ptx, ret_fenced, &error);
        if (r == FENCE_REWRITE_E_REFUSED)
                return result_fail(result, COMPILED_FAILED,
                                   "%s cannot run with fence = yes, as gpuqd is configured: %s%s",
                                   request->name,
                                   format_is_source(request->format) ? "in its PTX, " : "", error);
        return r;
}

int link_fenced(const Request *request, Result *result, const char *ptx, size_t n_ptx) {
        _cleanup_(fenced_finish) Fenced fenced = {};
        int r;

        r = fence_ptx(request, result, ptx, n_ptx, &fenced);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        free(result->image); /* what the source's compiler made without a fence */
        result->image = NULL;
        result->n_image = 0;
        r = link_ptx(request, result, fenced.text, fenced.n_text);
        if (r == 0 && result->status == COMPILED_OK)
                result->flags |= COMPILED_IS_FENCED;
        return r;
}
