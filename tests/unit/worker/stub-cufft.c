/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cuFFT that computes on the host, by the definition, of up to three axes. Like the real one it overwrites what it
 * transforms to real numbers. For all others it needs a work area, which it fills. It never reads from its work area.
 */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cufft_types.h"

#define EXPORT   __attribute__((visibility("default")))
#define PLANS    4096
#define N_AREA   100u
#define FAILED   6 /* CUFFT_EXEC_FAILED */
#define RANK_MAX 3

#define DECLARE(member, symbol, arguments) EXPORT int symbol arguments;
CUFFT_FUNCTIONS(DECLARE)

typedef double complex Complex;

typedef struct StubPlan {
        bool is_used;
        int rank, type;
        long long lengths[RANK_MAX], batch, in_apart, out_apart;
        unsigned char *area;
} StubPlan;

static StubPlan plans[PLANS];

/* For the test. */
extern EXPORT int n_made, n_alive;
int n_made, n_alive;

int cufftCreate(CufftHandle *ret_plan) {
        for (int i = 0; i < PLANS; ++i)
                if (!plans[i].is_used) {
                        plans[i] = (StubPlan){.is_used = true};
                        *ret_plan = i;
                        ++n_alive;
                        return FFT_SUCCESS;
                }
        return FFT_ALLOC_FAILED;
}

int cufftDestroy(CufftHandle plan) {
        plans[plan].is_used = false;
        --n_alive;
        return FFT_SUCCESS;
}

/* It has no memory of its own. */
int cufftSetAutoAllocation(CufftHandle plan, int is_on) {
        (void)plan;
        return is_on ? FFT_ALLOC_FAILED : FFT_SUCCESS;
}

int cufftSetStream(CufftHandle plan, CUstream stream) {
        (void)plan;
        (void)stream;
        return FFT_SUCCESS;
}

int cufftSetWorkArea(CufftHandle plan, void *area) {
        plans[plan].area = area;
        return FFT_SUCCESS;
}

static size_t area_of(const StubPlan *plan) {
        return plan->type == FFT_C2R || plan->type == FFT_Z2D ? 0 : N_AREA;
}

int cufftMakePlanMany64(CufftHandle handle, int rank, long long *lengths, long long *in_embed,
                        long long in_step, long long in_apart, long long *out_embed,
                        long long out_step, long long out_apart, int type, long long batch,
                        size_t *ret_n_area) {
        StubPlan *plan = &plans[handle];

        if (in_embed || out_embed || in_step != 1 || out_step != 1 || rank > RANK_MAX ||
            lengths[0] == 13) /* the test's example of what it cannot */
                return FFT_ALLOC_FAILED;
        plan->rank = rank;
        plan->type = type;
        plan->batch = batch;
        plan->in_apart = in_apart;
        plan->out_apart = out_apart;
        memcpy(plan->lengths, lengths, (size_t)rank * sizeof(*lengths));
        *ret_n_area = area_of(plan);
        ++n_made;
        return FFT_SUCCESS;
}

/* ---- transforms ----------------------------------------------------------------------- */

static long long count(const StubPlan *plan) {
        long long n = 1;

        for (int i = 0; i < plan->rank; ++i)
                n *= plan->lengths[i];
        return n;
}

/* The product of all coordinates' angles, in turns. */
static double turns(const StubPlan *plan, long long a, long long b) {
        double sum = 0;

        for (int i = plan->rank - 1; i >= 0; --i) {
                long long n = plan->lengths[i];

                sum += (double)((a % n) * (b % n) % n) / (double)n;
                a /= n;
                b /= n;
        }
        return sum;
}

/* Where a number of the whole is in the half, if it is there. */
static bool half_place(const StubPlan *plan, long long at, long long *ret_place) {
        long long n = plan->lengths[plan->rank - 1];

        *ret_place = at / n * (n / 2 + 1) + at % n;
        return at % n < n / 2 + 1;
}

/* The number that a half does not have is the conjugate of its mirror image. */
static long long mirror(const StubPlan *plan, long long at) {
        long long place = 0, step = 1;

        for (int i = plan->rank - 1; i >= 0; --i) {
                long long n = plan->lengths[i];

                place += (n - at % n) % n * step;
                step *= n;
                at /= n;
        }
        return place;
}

static void transform(const StubPlan *plan, const Complex *from, Complex *to, int sign) {
        long long n = count(plan);

        for (long long i = 0; i < n; ++i) {
                to[i] = 0;
                for (long long j = 0; j < n; ++j)
                        to[i] += from[j] * cexp(sign * 2 * M_PI * I * turns(plan, i, j));
        }
}

static int execute(CufftHandle handle, double *in, double *out, int type, int direction) {
        const StubPlan *plan = &plans[handle];
        long long n = count(plan), place;
        Complex *from = calloc((size_t)n, sizeof(*from)), *to = calloc((size_t)n, sizeof(*to));

        if (type != plan->type || !from || !to)
                return FFT_ALLOC_FAILED;
        if ((unsigned char *)in == plan->area)
                return FAILED;
        memset(plan->area, 0xee, area_of(plan));
        for (long long b = 0; b < plan->batch; ++b) {
                double *ours = in + b * plan->in_apart * (type == FFT_D2Z ? 1 : 2);
                double *theirs = out + b * plan->out_apart * (type == FFT_Z2D ? 1 : 2);

                for (long long i = 0; i < n; ++i) {
                        if (type == FFT_D2Z)
                                from[i] = ours[i];
                        else if (type == FFT_Z2Z)
                                from[i] = ours[2 * i] + I * ours[2 * i + 1];
                        else if (half_place(plan, i, &place))
                                from[i] = ours[2 * place] + I * ours[2 * place + 1];
                        else {
                                (void)half_place(plan, mirror(plan, i), &place);
                                from[i] = ours[2 * place] - I * ours[2 * place + 1];
                        }
                }
                transform(plan, from, to, direction);
                for (long long i = 0; i < n; ++i) {
                        if (type == FFT_Z2D) {
                                theirs[i] = creal(to[i]);
                                continue;
                        }
                        if (!half_place(plan, i, &place) && type == FFT_D2Z)
                                continue;
                        place = type == FFT_D2Z ? place : i;
                        theirs[2 * place] = creal(to[i]);
                        theirs[2 * place + 1] = cimag(to[i]);
                }
                if (type == FFT_Z2D)
                        ours[0] = NAN;
        }
        free(from);
        free(to);
        return FFT_SUCCESS;
}

int cufftExecZ2Z(CufftHandle plan, void *from, void *to, int direction) {
        return execute(plan, from, to, FFT_Z2Z, direction);
}

int cufftExecD2Z(CufftHandle plan, void *from, void *to) {
        return execute(plan, from, to, FFT_D2Z, FFT_FORWARD);
}

int cufftExecZ2D(CufftHandle plan, void *from, void *to) {
        return execute(plan, from, to, FFT_Z2D, FFT_INVERSE);
}

/* Of f32 there is only that they are told apart. */
int cufftExecC2C(CufftHandle plan, void *from, void *to, int direction) {
        (void)from;
        *(float *)to = (float)direction;
        return plans[plan].type == FFT_C2C ? FFT_SUCCESS : FFT_ALLOC_FAILED;
}

int cufftExecR2C(CufftHandle plan, void *from, void *to) {
        (void)from;
        (void)to;
        return plans[plan].type == FFT_R2C ? FFT_SUCCESS : FFT_ALLOC_FAILED;
}

int cufftExecC2R(CufftHandle plan, void *from, void *to) {
        (void)from;
        (void)to;
        return plans[plan].type == FFT_C2R ? FFT_SUCCESS : FFT_ALLOC_FAILED;
}
