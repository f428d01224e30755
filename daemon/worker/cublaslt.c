/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt
 *
 * It counts columns first: a row-major matrix is to it the transposed one. So it is asked for
 * the transposed product, B' A' = (A B)', and its first operand is our second.
 */
#include "worker/cublaslt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "util/log.h"
#include "util/macro.h"
#include "util/open_library.h"
#include "worker/cublaslt_types.h"

#define LT_PLANS_MAX     256u
#define LT_WORKSPACE_MAX (UINT64_C(32) << 20) /* as NVIDIA recommends for sm_90 */

/* The choice for a shape. */
typedef struct LtPlan {
        TAILQ_ENTRY(LtPlan) link;
        Gemm gemm; /* its factors make no difference */
        LtDesc desc;
        LtLayout a, b, c; /* as the library has them: a is our b */
        LtHeuristic choice;
        bool has_run;
} LtPlan;

#define LT_MEMBER(member, symbol, arguments) int(*member) arguments;
struct Cublaslt {
        LT_FUNCTIONS(LT_MEMBER)
        LtHandle handle;
        TAILQ_HEAD(LtPlans, LtPlan) plans; /* the most recently used first */
        unsigned n_plans;
};
#undef LT_MEMBER

static bool lt_resolve(Cublaslt *lt, void *library) {
#define LT_RESOLVE(member, symbol, arguments)                                                      \
        *(void **)&lt->member = dlsym(library, #symbol);                                           \
        if (!lt->member)                                                                           \
                return false;
        LT_FUNCTIONS(LT_RESOLVE)
#undef LT_RESOLVE
        return true;
}

Cublaslt *cublaslt_open(const char *folders) {
        static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
        void *library = open_library(folders, names);
        Cublaslt *lt = library ? calloc(1, sizeof(*lt)) : NULL;
        int status;

        if (!lt)
                return NULL;
        TAILQ_INIT(&lt->plans);
        if (!lt_resolve(lt, library)) {
                free(lt);
                return NULL;
        }
        status = lt->create(&lt->handle);
        if (status != LT_SUCCESS) {
                log_warning("cuBLASLt cannot be used: cublasLtCreate() returned %d", status);
                free(lt);
                return NULL;
        }
        return lt;
}

/* ---- a plan -------------------------------------------------------------------------- */

static int element_type(uint32_t element) {
        static const int types[] = {
                [GPUQ__V1__ELEMENT__F16] = LT_R_16F,
                [GPUQ__V1__ELEMENT__BF16] = LT_R_16BF,
                [GPUQ__V1__ELEMENT__SINGLE] = LT_R_32F,
                [GPUQ__V1__ELEMENT__DOUBLE] = LT_R_64F,
        };

        return types[element];
}

static int gemm_compute(const Gemm *gemm) {
        if (gemm->element == GPUQ__V1__ELEMENT__DOUBLE)
                return LT_COMPUTE_64F;
        return gemm->tf32 ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F;
}

/* What the factors are given in. */
static int gemm_scale(const Gemm *gemm) {
        return gemm->element == GPUQ__V1__ELEMENT__DOUBLE ? LT_R_64F : LT_R_32F;
}

static bool plan_make_layout(const Cublaslt *lt, const Gemm *gemm, const GemmMatrix *matrix,
                             uint64_t rows, uint64_t columns, LtLayout *ret_layout) {
        int32_t batch = (int32_t)gemm->batch;
        int64_t stride = (int64_t)matrix->stride;

        /* As it is stored, and then transposed. */
        if (lt->layout_create(ret_layout, element_type(gemm->element),
                              matrix->transposed ? rows : columns,
                              matrix->transposed ? columns : rows, (int64_t)matrix->ld))
                return false;
        return batch == 1 ||
               (!lt->layout_set(*ret_layout, LT_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)) &&
                !lt->layout_set(*ret_layout, LT_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                sizeof(stride)));
}

static bool plan_describe(const Cublaslt *lt, LtPlan *plan) {
        const Gemm *gemm = &plan->gemm;
        int32_t a_form = gemm->b.transposed ? LT_OP_T : LT_OP_N;
        int32_t b_form = gemm->a.transposed ? LT_OP_T : LT_OP_N;

        return !lt->desc_create(&plan->desc, gemm_compute(gemm), gemm_scale(gemm)) &&
               !lt->desc_set(plan->desc, LT_DESC_TRANSA, &a_form, sizeof(a_form)) &&
               !lt->desc_set(plan->desc, LT_DESC_TRANSB, &b_form, sizeof(b_form)) &&
               plan_make_layout(lt, gemm, &gemm->b, gemm->k, gemm->n, &plan->a) &&
               plan_make_layout(lt, gemm, &gemm->a, gemm->m, gemm->k, &plan->b) &&
               plan_make_layout(lt, gemm, &gemm->c, gemm->m, gemm->n, &plan->c);
}

/* No sums of parts that meet in the result, where they would be rounded to its type. */
static bool preference_fill(const Cublaslt *lt, LtPreference preference, const Gemm *gemm) {
        uint64_t n_workspace = LT_WORKSPACE_MAX;
        uint32_t schemes = LT_REDUCTION_SCHEME_NONE | LT_REDUCTION_SCHEME_COMPUTE_TYPE;
        const struct {
                int attribute;
                const void *value;
                size_t n_value;
        } all[] = {
                {LT_PREF_MAX_WORKSPACE_BYTES, &n_workspace, sizeof(n_workspace)},
                {LT_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes)},
                {LT_PREF_MIN_ALIGNMENT_A_BYTES, &gemm->b.alignment, sizeof(uint32_t)},
                {LT_PREF_MIN_ALIGNMENT_B_BYTES, &gemm->a.alignment, sizeof(uint32_t)},
                {LT_PREF_MIN_ALIGNMENT_C_BYTES, &gemm->c.alignment, sizeof(uint32_t)},
                {LT_PREF_MIN_ALIGNMENT_D_BYTES, &gemm->c.alignment, sizeof(uint32_t)},
        };

        for (size_t i = 0; i < ARRAY_SIZE(all); ++i)
                if (lt->preference_set(preference, all[i].attribute, all[i].value, all[i].n_value))
                        return false;
        return true;
}

static bool plan_choose(const Cublaslt *lt, LtPlan *plan) {
        LtPreference preference;
        int n = 0;
        bool ok;

        if (lt->preference_create(&preference))
                return false;
        ok = preference_fill(lt, preference, &plan->gemm) &&
             !lt->heuristic(lt->handle, plan->desc, plan->a, plan->b, plan->c, plan->c, preference,
                            1, &plan->choice, &n) &&
             n > 0 && plan->choice.state == LT_SUCCESS &&
             plan->choice.workspace <= LT_WORKSPACE_MAX;
        lt->preference_destroy(preference);
        return ok;
}

static LtPlan *plan_free(const Cublaslt *lt, LtPlan *plan) {
        LtLayout layouts[] = {plan->a, plan->b, plan->c};

        for (size_t i = 0; i < ARRAY_SIZE(layouts); ++i)
                if (layouts[i])
                        lt->layout_destroy(layouts[i]);
        if (plan->desc)
                lt->desc_destroy(plan->desc);
        free(plan);
        return NULL;
}

static LtPlan *plan_new(Cublaslt *lt, const Gemm *gemm) {
        LtPlan *plan = calloc(1, sizeof(*plan));

        if (!plan)
                return NULL;
        plan->gemm = *gemm;
        if (!plan_describe(lt, plan) || !plan_choose(lt, plan))
                return plan_free(lt, plan);
        return plan;
}

/* ---- plans ----------------------------------------------------------------------------- */

static LtPlan *lt_find(Cublaslt *lt, const Gemm *gemm) {
        LtPlan *plan;

        TAILQ_FOREACH (plan, &lt->plans, link)
                if (memcmp(&plan->gemm, gemm, GEMM_SHAPE_BYTES) == 0)
                        return plan;
        return NULL;
}

static void lt_make_room(Cublaslt *lt) {
        LtPlan *last = TAILQ_LAST(&lt->plans, LtPlans);

        if (lt->n_plans < LT_PLANS_MAX)
                return;
        TAILQ_REMOVE(&lt->plans, last, link);
        --lt->n_plans;
        plan_free(lt, last);
}

static LtPlan *lt_plan(Cublaslt *lt, const Gemm *gemm) {
        LtPlan *plan = lt_find(lt, gemm);

        if (plan) {
                TAILQ_REMOVE(&lt->plans, plan, link);
        } else {
                plan = plan_new(lt, gemm);
                if (!plan)
                        return NULL;
                lt_make_room(lt);
                ++lt->n_plans;
        }
        TAILQ_INSERT_HEAD(&lt->plans, plan, link);
        return plan;
}

bool cublaslt_plan(Cublaslt *lt, const Gemm *gemm, size_t *ret_workspace, bool *ret_is_new) {
        const LtPlan *plan = lt_plan(lt, gemm);

        if (!plan)
                return false;
        *ret_workspace = plan->choice.workspace;
        *ret_is_new = !plan->has_run;
        return true;
}

/* ---- a product --------------------------------------------------------------------------- */

/* A fault of the context shows at the next call of the driver. */
static CUresult status_result(int status) {
        switch (status) {
                case LT_SUCCESS:
                        return CUDA_SUCCESS;
                case LT_ALLOC_FAILED:
                        return CUDA_ERROR_OUT_OF_MEMORY;
                default:
                        log_warning("cublasLtMatmul() returned %d", status);
                        return CUDA_ERROR_NOT_SUPPORTED;
        }
}

CUresult cublaslt_gemm(Cublaslt *lt, const Gemm *gemm, const GemmPlaces *places, CUstream stream) {
        const void *a = (const void *)(uintptr_t)places->a, *b = (const void *)(uintptr_t)places->b;
        void *c = (void *)(uintptr_t)places->c, *workspace = (void *)(uintptr_t)places->workspace;
        float alpha = (float)gemm->alpha, beta = (float)gemm->beta;
        bool is_double = gemm->element == GPUQ__V1__ELEMENT__DOUBLE;
        LtPlan *plan = lt_plan(lt, gemm);

        if (!plan)
                return CUDA_ERROR_NOT_SUPPORTED;
        plan->has_run = true;
        return status_result(lt->matmul(
                lt->handle, plan->desc, is_double ? (const void *)&gemm->alpha : &alpha, b, plan->a,
                a, plan->b, is_double ? (const void *)&gemm->beta : &beta, c, plan->c, c, plan->c,
                &plan->choice.algo, workspace, plan->choice.workspace, stream));
}
