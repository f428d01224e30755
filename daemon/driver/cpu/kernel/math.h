/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_MATH_H
#define GPUQ_CPU_KERNEL_MATH_H

/*
 * Functions that CUDA has in addition to <math.h>. The fast functions (__expf and the like) are
 * the exact ones, so a result is at least as good as the GPU's.
 */

#define GPUQ_CPU_MINMAX(T, A, B)                                                                   \
        static inline constexpr T min(A a, B b) {                                                  \
                return (T)b < (T)a ? (T)b : (T)a;                                                  \
        }                                                                                          \
        static inline constexpr T max(A a, B b) {                                                  \
                return (T)a < (T)b ? (T)b : (T)a;                                                  \
        }
GPUQ_CPU_MINMAX(int, int, int)
GPUQ_CPU_MINMAX(unsigned int, unsigned int, unsigned int)
GPUQ_CPU_MINMAX(unsigned int, int, unsigned int)
GPUQ_CPU_MINMAX(unsigned int, unsigned int, int)
GPUQ_CPU_MINMAX(long, long, long)
GPUQ_CPU_MINMAX(unsigned long, unsigned long, unsigned long)
GPUQ_CPU_MINMAX(unsigned long, long, unsigned long)
GPUQ_CPU_MINMAX(unsigned long, unsigned long, long)
GPUQ_CPU_MINMAX(long long, long long, long long)
GPUQ_CPU_MINMAX(unsigned long long, unsigned long long, unsigned long long)
GPUQ_CPU_MINMAX(unsigned long long, long long, unsigned long long)
GPUQ_CPU_MINMAX(unsigned long long, unsigned long long, long long)
#undef GPUQ_CPU_MINMAX

/* Of a number and NaN, the number. */
static inline float min(float a, float b) {
        return fminf(a, b);
}
static inline float max(float a, float b) {
        return fmaxf(a, b);
}
static inline double min(double a, double b) {
        return fmin(a, b);
}
static inline double max(double a, double b) {
        return fmax(a, b);
}
static inline double min(float a, double b) {
        return fmin(a, b);
}
static inline double min(double a, float b) {
        return fmin(a, b);
}
static inline double max(float a, double b) {
        return fmax(a, b);
}
static inline double max(double a, float b) {
        return fmax(a, b);
}
static inline unsigned int umin(unsigned int a, unsigned int b) {
        return min(a, b);
}
static inline unsigned int umax(unsigned int a, unsigned int b) {
        return max(a, b);
}
static inline long long llmin(long long a, long long b) {
        return min(a, b);
}
static inline long long llmax(long long a, long long b) {
        return max(a, b);
}

/* f of a double, and f with an f of a float, and in C++ either. */
#define GPUQ_CPU_BOTH(name, argument, ...)                                                         \
        static inline double name(double argument) {                                               \
                typedef double T;                                                                  \
                return __VA_ARGS__;                                                                \
        }                                                                                          \
        static inline float name##f(float argument) {                                              \
                typedef float T;                                                                   \
                return (float)(__VA_ARGS__);                                                       \
        }                                                                                          \
        GPUQ_CPU_OF_FLOAT(name)
#define GPUQ_CPU_OF_FLOAT(name)                                                                    \
        static inline float name(float x) {                                                        \
                return name##f(x);                                                                 \
        }
/* Newer C libraries have these themselves, for C23. */
#if __GLIBC_PREREQ(2, 42)
GPUQ_CPU_OF_FLOAT(rsqrt)
#else
GPUQ_CPU_BOTH(rsqrt, x, (T)1 / std::sqrt((T)x))
#endif
GPUQ_CPU_BOTH(rcbrt, x, (T)1 / std::cbrt((T)x))
#if __GLIBC_PREREQ(2, 41)
GPUQ_CPU_OF_FLOAT(sinpi)
GPUQ_CPU_OF_FLOAT(cospi)
#else
/* Exact at multiples of a half, where sin(x * pi) is not. */
GPUQ_CPU_BOTH(sinpi, x,
              std::trunc((T)x) == (T)x ? (T)0 * (T)x
                                       : std::sin((T)std::remainder((double)x, 2.0) * (T)M_PI))
GPUQ_CPU_BOTH(cospi, x,
              std::trunc((T)x - (T)0.5) == (T)x - (T)0.5
                      ? (T)0
                      : std::cos((T)std::remainder((double)x, 2.0) * (T)M_PI))
#endif
GPUQ_CPU_BOTH(normcdf, x, (T)(0.5 * std::erfc(-(double)x * M_SQRT1_2)))
#undef GPUQ_CPU_BOTH
#undef GPUQ_CPU_OF_FLOAT

/* exp(x²) erfc(x): where erfc underflows, by its continued fraction. */
static inline double erfcx(double x) {
        double fraction = x;

        if (x < 10)
                return std::exp(x * x) * std::erfc(x);
        for (int i = 30; i > 0; i--)
                fraction = x + 0.5 * i / fraction;
        return 0.5 * M_2_SQRTPI / fraction;
}
static inline float erfcxf(float x) {
        return (float)erfcx((double)x);
}

/* The inverse of erf, by Winitzki's guess and Newton's steps. */
static inline double erfinv(double y) {
        double l, a = 0.147, b, x;

        if (!(std::fabs(y) < 1))
                return std::fabs(y) == 1 ? std::copysign((double)INFINITY, y) : (double)NAN;
        l = std::log1p(-y * y);
        b = 2 / (M_PI * a) + l / 2;
        x = std::copysign(std::sqrt(std::sqrt(b * b - l / a) - b), y);
        for (int i = 0; i < 4; i++) {
                double error =
                        y < 0.5 && y > -0.5
                                ? std::erf(x) - y
                                : std::copysign((1 - std::fabs(y)) - std::erfc(std::fabs(x)), y);
                double step = error / (M_2_SQRTPI * std::exp(-x * x));

                x -= step / (1 + x * step);
        }
        return x;
}
static inline float erfinvf(float y) {
        return (float)erfinv((double)y);
}
static inline double erfcinv(double y) {
        return y > 0.5 ? erfinv(1 - y) : -erfinv(y - 1);
}
static inline float erfcinvf(float y) {
        return (float)erfcinv((double)y);
}
static inline double normcdfinv(double y) {
        return -M_SQRT2 * erfcinv(2 * y);
}
static inline float normcdfinvf(float y) {
        return (float)normcdfinv((double)y);
}

static inline void sincospi(double x, double *sine, double *cosine) {
        *sine = sinpi(x);
        *cosine = cospi(x);
}
static inline void sincospif(float x, float *sine, float *cosine) {
        *sine = sinpif(x);
        *cosine = cospif(x);
}
static inline double rhypot(double x, double y) {
        return 1 / std::hypot(x, y);
}
static inline float rhypotf(float x, float y) {
        return 1 / std::hypot(x, y);
}
static inline double norm3d(double x, double y, double z) {
        return std::hypot(x, y, z);
}
static inline float norm3df(float x, float y, float z) {
        return std::hypot(x, y, z);
}
static inline double rnorm3d(double x, double y, double z) {
        return 1 / std::hypot(x, y, z);
}
static inline float rnorm3df(float x, float y, float z) {
        return 1 / std::hypot(x, y, z);
}
static inline double norm4d(double x, double y, double z, double w) {
        return std::hypot(std::hypot(x, y), std::hypot(z, w));
}
static inline float norm4df(float x, float y, float z, float w) {
        return std::hypot(std::hypot(x, y), std::hypot(z, w));
}
static inline double norm(int n, const double *x) {
        double sum = 0;

        for (int i = 0; i < n; i++)
                sum = std::hypot(sum, x[i]);
        return sum;
}
static inline float normf(int n, const float *x) {
        double sum = 0;

        for (int i = 0; i < n; i++)
                sum = std::hypot(sum, (double)x[i]);
        return (float)sum;
}

static inline float fdividef(float x, float y) {
        return x / y;
}
static inline float __fdividef(float x, float y) {
        return x / y;
}
/* glibc declares functions of these names, with another meaning: none of it. */
#define __expf    expf
#define __exp10f  exp10f
#define __logf    logf
#define __log2f   log2f
#define __log10f  log10f
#define __powf    powf
#define __sinf    sinf
#define __cosf    cosf
#define __tanf    tanf
#define __sincosf sincosf
static inline float __saturatef(float x) {
        return x > 0 ? x < 1 ? x : 1 : 0;
}
static inline float __frsqrt_rn(float x) {
        return (float)(1 / std::sqrt((double)x));
}

#define GPUQ_CPU_ROUNDED(prefix, T)                                                                \
        static inline T __##prefix##add_rn(T x, T y) {                                             \
                return x + y;                                                                      \
        }                                                                                          \
        static inline T __##prefix##sub_rn(T x, T y) {                                             \
                return x - y;                                                                      \
        }                                                                                          \
        static inline T __##prefix##mul_rn(T x, T y) {                                             \
                return x * y;                                                                      \
        }                                                                                          \
        static inline T __##prefix##div_rn(T x, T y) {                                             \
                return x / y;                                                                      \
        }                                                                                          \
        static inline T __##prefix##rcp_rn(T x) {                                                  \
                return 1 / x;                                                                      \
        }                                                                                          \
        static inline T __##prefix##sqrt_rn(T x) {                                                 \
                return std::sqrt(x);                                                               \
        }
GPUQ_CPU_ROUNDED(f, float)
GPUQ_CPU_ROUNDED(d, double)
#undef GPUQ_CPU_ROUNDED
static inline float __fmaf_rn(float x, float y, float z) {
        return fmaf(x, y, z);
}
static inline double __fma_rn(double x, double y, double z) {
        return std::fma(x, y, z);
}

#endif
