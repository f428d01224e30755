/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers where the CUDA Toolkit's header is missing. */
#pragma once

#ifdef __CUDACC_RTC__
#error "cuComplex.h: the CUDA Toolkit's headers are missing beside NVRTC"
#endif

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

/* Quotients and absolute values are scaled, so that squares do not overflow. */
#define GPUQ_COMPLEX(T, real, f)                                                                   \
        static __device__ __forceinline__ real cuCreal##f(T x) {                                   \
                return x.x;                                                                        \
        }                                                                                          \
        static __device__ __forceinline__ real cuCimag##f(T x) {                                   \
                return x.y;                                                                        \
        }                                                                                          \
        static __device__ __forceinline__ T cuConj##f(T x) {                                       \
                return {x.x, -x.y};                                                                \
        }                                                                                          \
        static __device__ __forceinline__ T cuCadd##f(T x, T y) {                                  \
                return {x.x + y.x, x.y + y.y};                                                     \
        }                                                                                          \
        static __device__ __forceinline__ T cuCsub##f(T x, T y) {                                  \
                return {x.x - y.x, x.y - y.y};                                                     \
        }                                                                                          \
        static __device__ __forceinline__ T cuCmul##f(T x, T y) {                                  \
                return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};                             \
        }                                                                                          \
        static __device__ __forceinline__ T cuCfma##f(T x, T y, T z) {                             \
                return {fma(-x.y, y.y, fma(x.x, y.x, z.x)), fma(x.y, y.x, fma(x.x, y.y, z.y))};    \
        }                                                                                          \
        static __device__ __forceinline__ T cuCdiv##f(T x, T y) {                                  \
                real scale = 1 / (fabs(y.x) + fabs(y.y));                                          \
                real a = x.x * scale, b = x.y * scale, c = y.x * scale, d = y.y * scale;           \
                real by = 1 / (c * c + d * d);                                                     \
                return {(a * c + b * d) * by, (b * c - a * d) * by};                               \
        }                                                                                          \
        static __device__ __forceinline__ real cuCabs##f(T x) {                                    \
                real a = fabs(x.x), b = fabs(x.y), most = fmax(a, b), least = fmin(a, b);          \
                real quotient = least / most;                                                      \
                if (most == 0 || isinf(most))                                                      \
                        return most;                                                               \
                return most * sqrt(1 + quotient * quotient);                                       \
        }
GPUQ_COMPLEX(cuFloatComplex, float, f)
GPUQ_COMPLEX(cuDoubleComplex, double, )
#undef GPUQ_COMPLEX
static __device__ __forceinline__ cuFloatComplex make_cuFloatComplex(float x, float y) {
        return {x, y};
}
static __device__ __forceinline__ cuComplex make_cuComplex(float x, float y) {
        return {x, y};
}
static __device__ __forceinline__ cuDoubleComplex make_cuDoubleComplex(double x, double y) {
        return {x, y};
}
static __device__ __forceinline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
        return {(float)x.x, (float)x.y};
}
static __device__ __forceinline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) {
        return {x.x, x.y};
}
