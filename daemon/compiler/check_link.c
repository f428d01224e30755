/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checked images for GPUs, and the rewrite that those for the CPU driver begin with.
 */
#include <string.h>

#include "compiler/backend.h"
#include "compiler/device_runtime.h"

int check_ptx(const Request *request, Result *result, const char *ptx, size_t n_ptx,
              Checked *ret_checked) {
        _cleanup_(freep) char *error = NULL, *call = NULL;
        int r;

        if (request->fenced)
                return result_fail(
                        result, COMPILED_FAILED,
                        "%s cannot run checked, as this gpuqd is configured with fence = "
                        "yes: a job tells in its error that it accessed memory outside, "
                        "but not where",
                        request->name);
        call = device_runtime_call(ptx, n_ptx);
        if (call)
                return result_fail(result, COMPILED_FAILED,
                                   "%s cannot run checked: %s, and the accesses of kernels that "
                                   "no job launches cannot be checked",
                                   request->name, call);
        r = check_rewrite(ptx, n_ptx, request->name, ret_checked, &error);
        if (r == CHECK_REWRITE_E_REFUSED)
                return result_fail(result, COMPILED_FAILED, "%s cannot run checked: %s%s",
                                   request->name,
                                   request->format == FORMAT_SOURCE ? "in its PTX, " : "", error);
        return r;
}

void check_take_sites(Result *result, Checked *checked) {
        free(result->sites);
        result->sites = TAKE_PTR(checked->sites);
        result->flags &= ~(uint32_t)COMPILED_HAS_TWINS; /* a checked job runs alone */
        result->flags |= COMPILED_IS_CHECKED;
}

int link_checked(const Request *request, Result *result, const char *ptx, size_t n_ptx) {
        _cleanup_(checked_finish) Checked checked = {};
        int r;

        r = check_ptx(request, result, ptx, n_ptx, &checked);
        if (r < 0 || result->status != COMPILED_OK)
                return r;

        free(result->image); /* what the source's compiler made without checks */
        result->image = NULL;
        r = link_image(request, result, FORMAT_PTX, checked.text, checked.n_text);
        if (r == 0 && result->status == COMPILED_OK)
                check_take_sites(result, &checked);
        return r;
}
