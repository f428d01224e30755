/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FFTW
 *
 * Its version 3 is declared here as far as it is used. Only the lock's holder may plan.
 */
#include "worker/fftw.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "util/macro.h"
#include "util/open_library.h"

#define FFTW_FORWARD       (-1)
#define FFTW_BACKWARD      (+1)
#define FFTW_DESTROY_INPUT 1u
#define FFTW_UNALIGNED     2u
#define FFTW_ESTIMATE      64u

#define FFTW_PLANS_MAX 128u

typedef void *Plan;
typedef Plan (*PlanReal)(int rank, const int *n, int batch, void *in, const int *in_embed,
                         int in_step, int in_apart, void *out, const int *out_embed, int out_step,
                         int out_apart, unsigned flags);

/* Of one precision. */
typedef struct FftwFunctions {
        Plan (*plan_many_dft)(int rank, const int *n, int batch, void *in, const int *in_embed,
                              int in_step, int in_apart, void *out, const int *out_embed,
                              int out_step, int out_apart, int sign, unsigned flags);
        PlanReal plan_many_dft_r2c, plan_many_dft_c2r;
        void (*execute_dft)(Plan plan, void *in, void *out);
        void (*execute_dft_r2c)(Plan plan, void *in, void *out);
        void (*execute_dft_c2r)(Plan plan, void *in, void *out);
        void (*destroy_plan)(Plan plan);
} FftwFunctions;

typedef struct FftwPlan {
        TAILQ_ENTRY(FftwPlan) link;
        Fft fft;
        Plan plan;
        unsigned n_users;
} FftwPlan;

struct Fftw {
        FftwFunctions functions[2];            /* f32, f64 */
        pthread_mutex_t lock;                  /* of all below, and of FFTW's planner */
        TAILQ_HEAD(FftwPlans, FftwPlan) plans; /* the most recently used first */
        unsigned n_plans;
};

static bool fftw_resolve(const char *folders, const char *name, const char *prefix,
                         FftwFunctions *functions) {
        const char *const names[] = {name, NULL};
        void *library = open_library(folders, names);
        const struct {
                const char *name;
                void *to;
        } symbols[] = {
                {"plan_many_dft", &functions->plan_many_dft},
                {"plan_many_dft_r2c", &functions->plan_many_dft_r2c},
                {"plan_many_dft_c2r", &functions->plan_many_dft_c2r},
                {"execute_dft", &functions->execute_dft},
                {"execute_dft_r2c", &functions->execute_dft_r2c},
                {"execute_dft_c2r", &functions->execute_dft_c2r},
                {"destroy_plan", &functions->destroy_plan},
        };

        for (size_t i = 0; library && i < ARRAY_SIZE(symbols); i++) {
                char text[64];
                void *symbol;

                snprintf(text, sizeof(text), "%s_%s", prefix, symbols[i].name);
                symbol = dlsym(library, text);
                if (!symbol)
                        return false;
                memcpy(symbols[i].to, &symbol, sizeof(symbol));
        }
        return library != NULL;
}

Fftw *fftw_open(const char *folders) {
        Fftw *fftw = calloc(1, sizeof(*fftw));

        if (!fftw)
                return NULL;
        if (!fftw_resolve(folders, "libfftw3f.so.3", "fftwf", &fftw->functions[0]) ||
            !fftw_resolve(folders, "libfftw3.so.3", "fftw", &fftw->functions[1])) {
                free(fftw);
                return NULL;
        }
        pthread_mutex_init(&fftw->lock, NULL);
        TAILQ_INIT(&fftw->plans);
        return fftw;
}

static const FftwFunctions *fftw_functions(const Fftw *fftw, const Fft *fft) {
        return &fftw->functions[fft->element == GPUQ__V1__ELEMENT__DOUBLE];
}

/* ---- plans, with the lock ------------------------------------------------------------- */

/* Without measuring, FFTW does not read the arrays, but takes their alignment from the addresses. */
static Plan fftw_make_plan(const Fftw *fftw, const Fft *fft) {
        const FftwFunctions *functions = fftw_functions(fftw, fft);
        void *in = (void *)(uintptr_t)FFT_ALIGNMENT, *out = (void *)(uintptr_t)(2 * FFT_ALIGNMENT);
        int n[FFT_RANK_MAX], rank = (int)fft->rank, batch = (int)fft->batch;
        int in_apart = (int)fft_from_numbers(fft), out_apart = (int)fft_to_numbers(fft);
        unsigned flags = FFTW_ESTIMATE | (fft->is_aligned ? 0 : FFTW_UNALIGNED);

        for (int i = 0; i < rank; i++)
                n[i] = (int)fft->lengths[i];
        switch (fft->form) {
                case GPUQ__V1__FORM__REAL_TO_COMPLEX:
                        return functions->plan_many_dft_r2c(rank, n, batch, in, NULL, 1, in_apart,
                                                            out, NULL, 1, out_apart, flags);
                case GPUQ__V1__FORM__COMPLEX_TO_REAL:
                        return functions->plan_many_dft_c2r(rank, n, batch, in, NULL, 1, in_apart,
                                                            out, NULL, 1, out_apart,
                                                            flags | FFTW_DESTROY_INPUT);
                default:
                        return functions->plan_many_dft(
                                rank, n, batch, in, NULL, 1, in_apart, out, NULL, 1, out_apart,
                                fft->inverse ? FFTW_BACKWARD : FFTW_FORWARD, flags);
        }
}

static void fftw_make_room(Fftw *fftw) {
        FftwPlan *plan;

        if (fftw->n_plans < FFTW_PLANS_MAX)
                return;
        TAILQ_FOREACH_REVERSE (plan, &fftw->plans, FftwPlans, link)
                if (plan->n_users == 0)
                        break;
        if (!plan)
                return;
        TAILQ_REMOVE(&fftw->plans, plan, link);
        --fftw->n_plans;
        fftw_functions(fftw, &plan->fft)->destroy_plan(plan->plan);
        free(plan);
}

static FftwPlan *fftw_plan_new(Fftw *fftw, const Fft *fft) {
        FftwPlan *plan = calloc(1, sizeof(*plan));

        if (!plan)
                return NULL;
        plan->fft = *fft;
        plan->plan = fftw_make_plan(fftw, fft);
        if (!plan->plan) {
                free(plan);
                return NULL;
        }
        fftw_make_room(fftw);
        TAILQ_INSERT_HEAD(&fftw->plans, plan, link);
        ++fftw->n_plans;
        return plan;
}

static FftwPlan *fftw_find(Fftw *fftw, const Fft *fft) {
        FftwPlan *plan;

        TAILQ_FOREACH (plan, &fftw->plans, link)
                if (memcmp(&plan->fft, fft, sizeof(*fft)) == 0)
                        break;
        if (!plan)
                return fftw_plan_new(fftw, fft);
        TAILQ_REMOVE(&fftw->plans, plan, link);
        TAILQ_INSERT_HEAD(&fftw->plans, plan, link);
        return plan;
}

/* ---- a transform ----------------------------------------------------------------------- */

uint64_t fftw_workspace(const Fft *fft) {
        return fft->form == GPUQ__V1__FORM__COMPLEX_TO_REAL ? fft->from_bytes : 0;
}

static void fftw_execute(const FftwFunctions *functions, const FftwPlan *plan,
                         const FftPlaces *places) {
        void *from = (void *)(uintptr_t)places->from, *to = (void *)(uintptr_t)places->to;
        void *copy = (void *)(uintptr_t)places->workspace;

        switch (plan->fft.form) {
                case GPUQ__V1__FORM__REAL_TO_COMPLEX:
                        functions->execute_dft_r2c(plan->plan, from, to);
                        return;
                case GPUQ__V1__FORM__COMPLEX_TO_REAL:
                        memcpy(copy, from, plan->fft.from_bytes);
                        functions->execute_dft_c2r(plan->plan, copy, to);
                        return;
                default:
                        functions->execute_dft(plan->plan, from, to);
        }
}

bool fftw_transform(Fftw *fftw, const Fft *fft, const FftPlaces *places) {
        FftwPlan *plan;

        pthread_mutex_lock(&fftw->lock);
        plan = fftw_find(fftw, fft);
        if (plan)
                ++plan->n_users;
        pthread_mutex_unlock(&fftw->lock);
        if (!plan)
                return false;

        fftw_execute(fftw_functions(fftw, fft), plan, places);

        pthread_mutex_lock(&fftw->lock);
        --plan->n_users;
        pthread_mutex_unlock(&fftw->lock);
        return true;
}
