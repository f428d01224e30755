/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complex numbers of the CUDA Toolkit, for kernels: float2 and double2 with the real part in x.
 */
#pragma once

#ifdef __cplusplus
extern "C++" { /* also where a whole source is extern "C", as PyCUDA's */
#endif

#define GPUQ_COMPLEX static __host__ __device__ __inline__

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define GPUQ_COMPLEX_FUNCTIONS(Complex, Real, f, sqrt, fabs)                                       \
        GPUQ_COMPLEX Real cuCreal##f(Complex z) {                                                  \
                return z.x;                                                                        \
        }                                                                                          \
        GPUQ_COMPLEX Real cuCimag##f(Complex z) {                                                  \
                return z.y;                                                                        \
        }                                                                                          \
        GPUQ_COMPLEX Complex cuConj##f(Complex z) {                                                \
                z.y = -z.y;                                                                        \
                return z;                                                                          \
        }                                                                                          \
        GPUQ_COMPLEX Complex cuCadd##f(Complex a, Complex b) {                                     \
                a.x += b.x;                                                                        \
                a.y += b.y;                                                                        \
                return a;                                                                          \
        }                                                                                          \
        GPUQ_COMPLEX Complex cuCsub##f(Complex a, Complex b) {                                     \
                a.x -= b.x;                                                                        \
                a.y -= b.y;                                                                        \
                return a;                                                                          \
        }                                                                                          \
        GPUQ_COMPLEX Complex cuCmul##f(Complex a, Complex b) {                                     \
                Complex z;                                                                         \
                                                                                                   \
                z.x = a.x * b.x - a.y * b.y;                                                       \
                z.y = a.x * b.y + a.y * b.x;                                                       \
                return z;                                                                          \
        }                                                                                          \
        /* Scaled, so that the square of a large divisor does not overflow. */                     \
        GPUQ_COMPLEX Complex cuCdiv##f(Complex a, Complex b) {                                     \
                Real scale = 1 / (fabs(b.x) + fabs(b.y)), square;                                  \
                Complex z;                                                                         \
                                                                                                   \
                a.x *= scale, a.y *= scale, b.x *= scale, b.y *= scale;                            \
                square = 1 / (b.x * b.x + b.y * b.y);                                              \
                z.x = (a.x * b.x + a.y * b.y) * square;                                            \
                z.y = (a.y * b.x - a.x * b.y) * square;                                            \
                return z;                                                                          \
        }                                                                                          \
        GPUQ_COMPLEX Real cuCabs##f(Complex z) {                                                   \
                Real x = fabs(z.x), y = fabs(z.y);                                                 \
                Real large = x > y ? x : y, small = x > y ? y : x, ratio = small / large;          \
                                                                                                   \
                if (!(large > 0 && large - large == 0)) /* zero, infinite or not a number */       \
                        return x + y;                                                              \
                return large * sqrt(1 + ratio * ratio);                                            \
        }                                                                                          \
        GPUQ_COMPLEX Complex cuCfma##f(Complex a, Complex b, Complex c) {                          \
                return cuCadd##f(cuCmul##f(a, b), c);                                              \
        }

GPUQ_COMPLEX_FUNCTIONS(cuFloatComplex, float, f, sqrtf, fabsf)
GPUQ_COMPLEX_FUNCTIONS(cuDoubleComplex, double, , sqrt, fabs)
#undef GPUQ_COMPLEX_FUNCTIONS

GPUQ_COMPLEX cuFloatComplex make_cuFloatComplex(float x, float y) {
        cuFloatComplex z;

        z.x = x;
        z.y = y;
        return z;
}
GPUQ_COMPLEX cuDoubleComplex make_cuDoubleComplex(double x, double y) {
        cuDoubleComplex z;

        z.x = x;
        z.y = y;
        return z;
}
GPUQ_COMPLEX cuComplex make_cuComplex(float x, float y) {
        return make_cuFloatComplex(x, y);
}
GPUQ_COMPLEX cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
        return make_cuFloatComplex((float)z.x, (float)z.y);
}
GPUQ_COMPLEX cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
        return make_cuDoubleComplex(z.x, z.y);
}

#ifdef __cplusplus
} /* extern "C++" */
#endif
#undef GPUQ_COMPLEX
