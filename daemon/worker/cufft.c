/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuFFT
 */
#include "worker/cufft.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "util/log.h"
#include "util/macro.h"
#include "util/open_library.h"
#include "worker/cufft_types.h"

#define CUFFT_PLANS_MAX 64u
#define CUFFT_ALIGNMENT 256u /* of the copy behind the work area */

typedef struct CufftPlan {
        TAILQ_ENTRY(CufftPlan) link;
        Fft fft;
        CufftHandle handle;
        size_t n_area; /* bytes, rounded up */
} CufftPlan;

#define CUFFT_MEMBER(member, symbol, arguments) int(*member) arguments;
struct Cufft {
        CUFFT_FUNCTIONS(CUFFT_MEMBER)
        const Driver *cu;
        TAILQ_HEAD(CufftPlans, CufftPlan) plans; /* the most recently used first */
        unsigned n_plans;
};
#undef CUFFT_MEMBER

static bool cufft_resolve(Cufft *cufft, void *library) {
#define CUFFT_RESOLVE(member, symbol, arguments)                                                   \
        *(void **)&cufft->member = dlsym(library, #symbol);                                        \
        if (!cufft->member)                                                                        \
                return false;
        CUFFT_FUNCTIONS(CUFFT_RESOLVE)
#undef CUFFT_RESOLVE
        return true;
}

Cufft *cufft_open(const Driver *cu, const char *folders) {
        static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", NULL};
        void *library = open_library(folders, names);
        Cufft *cufft = library ? calloc(1, sizeof(*cufft)) : NULL;

        if (!cufft) {
                log_info("cuFFT cannot be opened");
                return NULL;
        }
        if (!cufft_resolve(cufft, library)) {
                log_info("cuFFT lacks a function: %s", dlerror());
                free(cufft);
                return NULL;
        }
        cufft->cu = cu;
        TAILQ_INIT(&cufft->plans);
        return cufft;
}

/* ---- plans ----------------------------------------------------------------------------- */

static int plan_type(const Fft *fft) {
        static const int types[][2] = {
                [GPUQ__V1__FORM__COMPLEX] = {FFT_C2C, FFT_Z2Z},
                [GPUQ__V1__FORM__REAL_TO_COMPLEX] = {FFT_R2C, FFT_D2Z},
                [GPUQ__V1__FORM__COMPLEX_TO_REAL] = {FFT_C2R, FFT_Z2D},
        };

        return types[fft->form][fft->element == GPUQ__V1__ELEMENT__DOUBLE];
}

/* What cuFFT transforms to real numbers, it overwrites. */
static bool fft_is_copied(const Fft *fft) {
        return fft->form == GPUQ__V1__FORM__COMPLEX_TO_REAL;
}

static int plan_make(const Cufft *cufft, CufftPlan *plan) {
        long long lengths[FFT_RANK_MAX];
        size_t n_area = 0;
        int r;

        for (uint32_t i = 0; i < plan->fft.rank; ++i)
                lengths[i] = (long long)plan->fft.lengths[i];
        r = cufft->set_auto_allocation(plan->handle, 0);
        if (r == FFT_SUCCESS)
                r = cufft->make_plan(plan->handle, (int)plan->fft.rank, lengths, NULL, 1,
                                     (long long)fft_from_numbers(&plan->fft), NULL, 1,
                                     (long long)fft_to_numbers(&plan->fft), plan_type(&plan->fft),
                                     (long long)plan->fft.batch, &n_area);
        /* cuFFT does not read from its work area (CUFFT_EXEC_FAILED), even from one that it does not need. */
        if (fft_is_copied(&plan->fft))
                n_area = MAX(n_area, 1u);
        plan->n_area = (n_area + CUFFT_ALIGNMENT - 1) / CUFFT_ALIGNMENT * CUFFT_ALIGNMENT;
        return r;
}

static CufftPlan *plan_new(const Cufft *cufft, const Fft *fft) {
        CufftPlan *plan = calloc(1, sizeof(*plan));
        int r;

        if (!plan)
                return NULL;
        plan->fft = *fft;
        r = cufft->create(&plan->handle);
        if (r != FFT_SUCCESS) {
                log_info("cuFFT makes no plan: its status is %d", r);
                free(plan);
                return NULL;
        }
        r = plan_make(cufft, plan);
        if (r == FFT_SUCCESS)
                return plan;
        log_info("cuFFT cannot plan a transform: its status is %d", r);
        cufft->destroy(plan->handle);
        free(plan);
        return NULL;
}

/* What it frees on the device waits for transforms that use it. */
static void cufft_make_room(Cufft *cufft) {
        CufftPlan *last = TAILQ_LAST(&cufft->plans, CufftPlans);

        if (cufft->n_plans < CUFFT_PLANS_MAX)
                return;
        TAILQ_REMOVE(&cufft->plans, last, link);
        --cufft->n_plans;
        cufft->destroy(last->handle);
        free(last);
}

static CufftPlan *cufft_find_made(const Cufft *cufft, const Fft *fft) {
        CufftPlan *plan;

        TAILQ_FOREACH (plan, &cufft->plans, link)
                if (memcmp(&plan->fft, fft, sizeof(*fft)) == 0)
                        return plan;
        return NULL;
}

bool cufft_has_plan(const Cufft *cufft, const Fft *fft) {
        return cufft_find_made(cufft, fft) != NULL;
}

static CufftPlan *cufft_find(Cufft *cufft, const Fft *fft) {
        CufftPlan *plan = cufft_find_made(cufft, fft);

        if (plan) {
                TAILQ_REMOVE(&cufft->plans, plan, link);
        } else {
                plan = plan_new(cufft, fft);
                if (!plan)
                        return NULL;
                cufft_make_room(cufft);
                ++cufft->n_plans;
        }
        TAILQ_INSERT_HEAD(&cufft->plans, plan, link);
        return plan;
}

bool cufft_plan(Cufft *cufft, const Fft *fft, size_t *ret_workspace) {
        const CufftPlan *plan = cufft_find(cufft, fft);

        if (!plan)
                return false;
        *ret_workspace = plan->n_area + (fft_is_copied(fft) ? fft->from_bytes : 0);
        return true;
}

/* ---- a transform ------------------------------------------------------------------------- */

static int plan_execute(const Cufft *cufft, const CufftPlan *plan, void *from, void *to) {
        int direction = plan->fft.inverse ? FFT_INVERSE : FFT_FORWARD;

        switch (plan_type(&plan->fft)) {
                case FFT_C2C:
                        return cufft->exec_c2c(plan->handle, from, to, direction);
                case FFT_Z2Z:
                        return cufft->exec_z2z(plan->handle, from, to, direction);
                case FFT_R2C:
                        return cufft->exec_r2c(plan->handle, from, to);
                case FFT_D2Z:
                        return cufft->exec_d2z(plan->handle, from, to);
                case FFT_C2R:
                        return cufft->exec_c2r(plan->handle, from, to);
                default:
                        return cufft->exec_z2d(plan->handle, from, to);
        }
}

static CUresult status_result(int status) {
        if (status == FFT_SUCCESS)
                return CUDA_SUCCESS;
        if (status == FFT_ALLOC_FAILED)
                return CUDA_ERROR_OUT_OF_MEMORY;
        log_warning("cuFFT returned %d", status);
        return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cufft_transform(Cufft *cufft, const Fft *fft, const FftPlaces *places, CUstream stream) {
        const CufftPlan *plan = cufft_find(cufft, fft);
        CUdeviceptr from = places->from;
        CUresult result;
        int status;

        if (!plan)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (fft_is_copied(fft)) {
                from = places->workspace + plan->n_area;
                result = cufft->cu->cuMemcpyDtoDAsync(from, places->from, fft->from_bytes, stream);
                if (result != CUDA_SUCCESS)
                        return result;
        }
        status = cufft->set_stream(plan->handle, stream);
        if (status == FFT_SUCCESS)
                status = cufft->set_work_area(plan->handle, (void *)(uintptr_t)places->workspace);
        if (status == FFT_SUCCESS)
                status = plan_execute(cufft, plan, (void *)(uintptr_t)from,
                                      (void *)(uintptr_t)places->to);
        return status_result(status);
}
