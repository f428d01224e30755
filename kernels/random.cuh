/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers: Philox 4x32-10
 *
 * J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel Random Numbers: As Easy as 1, 2, 3. SC'11. A number is a
 * function of seed, stream and its index, whichever thread computes it. Seed, stream and index are key and counter as
 * cuRAND has them (seed, subsequence, offset), and numbers are made of bits as curand_uniform4(),
 * curand_uniform2_double() and curand_normal4() do.
 *
 * Logarithm, sine and cosine are computed here, of additions, multiplications and fma() with given rounding, so that
 * every device and compiler gives the same bits.
 */
#pragma once
#include "common.cuh"

#define PHILOX_ROUNDS 10

struct PhiloxBlock {
        unsigned words[4];
};

static __device__ inline PhiloxBlock philox(u64 seed, u64 block, u64 stream) {
        unsigned key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
        unsigned a = (unsigned)block, b = (unsigned)(block >> 32);
        unsigned c = (unsigned)stream, d = (unsigned)(stream >> 32);

#pragma unroll
        for (unsigned round = 0; round < PHILOX_ROUNDS; ++round) {
                u64 first = (u64)0xd2511f53u * a, second = (u64)0xcd9e8d57u * c;

                a = (unsigned)(second >> 32) ^ b ^ key0;
                b = (unsigned)second;
                c = (unsigned)(first >> 32) ^ d ^ key1;
                d = (unsigned)first;
                key0 += 0x9e3779b9u;
                key1 += 0xbb67ae85u;
        }
        return PhiloxBlock{{a, b, c, d}};
}

/* ---- arithmetic that no compiler fuses ------------------------------------------------ */

static __device__ __forceinline__ float times(float a, float b) {
        return __fmul_rn(a, b);
}
static __device__ __forceinline__ double times(double a, double b) {
        return __dmul_rn(a, b);
}
static __device__ __forceinline__ float plus(float a, float b) {
        return __fadd_rn(a, b);
}
static __device__ __forceinline__ double plus(double a, double b) {
        return __dadd_rn(a, b);
}
static __device__ __forceinline__ float root_of(float a) {
        return __fsqrt_rn(a);
}
static __device__ __forceinline__ double root_of(double a) {
        return __dsqrt_rn(a);
}

template <class T, unsigned N>
static __device__ __forceinline__ T polynomial_of(const T (&c)[N], T x) {
        T y = c[0];

#pragma unroll
        for (unsigned i = 1; i < N; ++i)
                y = fma(y, x, c[i]);
        return y;
}

/* ---- from 0, exclusively, to 1 ---------------------------------------------------------- */

static __device__ __forceinline__ float uniform_of(unsigned word) {
        return fma((float)word, 0x1p-32f, 0x1p-33f);
}

static __device__ __forceinline__ double uniform_of(unsigned low, unsigned high) {
        return fma((double)((u64)low ^ (u64)high << 21), 0x1p-53, 0x1p-54);
}

/* ---- logarithms of such numbers ------------------------------------------------------------ */

/* As Cephes' logf(). */
static __device__ inline float log_of(float x) {
        const float c[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                           -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                           2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
        unsigned bits = __float_as_uint(x);
        float exponent = (float)((int)(bits >> 23) - 126), square, y;
        float m = __uint_as_float((bits & 0x7fffffu) | 0x3f000000u);

        if (m < 0.707106781186547524f) {
                exponent = plus(exponent, -1.0f);
                m = plus(m, m);
        }
        m = plus(m, -1.0f);
        square = times(m, m);
        y = times(times(polynomial_of(c, m), m), square);
        y = fma(exponent, -2.12194440e-4f, y);
        y = fma(-0.5f, square, y);
        return fma(exponent, 0.693359375f, plus(m, y));
}

/* As FreeBSD's log(). */
static __device__ inline double log_of(double x) {
        const double c[] = {1.479819860511658591e-01, 1.531383769920937332e-01,
                            1.818357216161805012e-01, 2.222219843214978396e-01,
                            2.857142874366239149e-01, 3.999999999940941908e-01,
                            6.666666666666735130e-01};
        u64 bits = (u64)__double_as_longlong(x);
        double exponent = (double)((int)(bits >> 52) - 1022), s, z, half, y;
        double m = __longlong_as_double((long long)((bits & 0xfffffffffffffull) | 0x3fe0000000000000ull));

        if (m < 0.70710678118654752440) {
                exponent = plus(exponent, -1.0);
                m = plus(m, m);
        }
        m = plus(m, -1.0);
        s = __ddiv_rn(m, plus(2.0, m));
        z = times(s, s);
        half = times(times(0.5, m), m);
        y = times(polynomial_of(c, z), z);
        y = fma(s, plus(half, y), times(exponent, 1.90821492927058770002e-10));
        return fma(exponent, 6.93147180369123816490e-01, plus(m, plus(y, -half)));
}

/* ---- sine and cosine of so much of a turn, from 0 to 1 ----------------------------------------- */

static __device__ __forceinline__ void sine_of(float x, float *sine, float *cosine) {
        const float s[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
        const float c[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
        float square = times(x, x);

        *sine = fma(times(polynomial_of(s, square), square), x, x);
        *cosine = fma(times(polynomial_of(c, square), square), square, fma(-0.5f, square, 1.0f));
}

static __device__ __forceinline__ void sine_of(double x, double *sine, double *cosine) {
        const double s[] = {1.58969099521155010221e-10, -2.50507602534068634195e-08,
                            2.75573137070700676789e-06, -1.98412698298579493134e-04,
                            8.33333333332248946124e-03, -1.66666666666666324348e-01};
        const double c[] = {-1.13596475577881948265e-11, 2.08757232129817482790e-09,
                            -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                            -1.38888888888741095749e-03, 4.16666666666666019037e-02};
        double square = times(x, x);

        *sine = fma(times(polynomial_of(s, square), square), x, x);
        *cosine = fma(times(polynomial_of(c, square), square), square, fma(-0.5, square, 1.0));
}

/* Of the angle that remains to the nearest quarter turn. */
template <class T> static __device__ __forceinline__ void turn_of(T turn, T *sine, T *cosine) {
        T quarters = times(turn, (T)4), s, c;
        int quarter = (int)plus(quarters, (T)0.5);

        sine_of(times(plus(quarters, -(T)quarter), (T)1.57079632679489661923), &s, &c);
        *sine = quarter & 1 ? c : s;
        *cosine = quarter & 1 ? s : c;
        if (quarter & 2)
                *sine = -*sine;
        if ((quarter + 1) & 2)
                *cosine = -*cosine;
}

/* Box and Muller's: two normal numbers of two uniform ones. */
template <class T> static __device__ __forceinline__ void normal_of(T u, T v, T *ret) {
        T length = times((T)-2, log_of(u)), sine, cosine;

        length = length > 0 ? root_of(length) : (T)0;
        turn_of(v, &sine, &cosine);
        ret[0] = times(length, sine);
        ret[1] = times(length, cosine);
}

/* ---- numbers of a block --------------------------------------------------------------------- */

struct RandomBits {
        typedef unsigned T;
        static __device__ __forceinline__ void make(const PhiloxBlock &b, unsigned *ret) {
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
                        ret[i] = b.words[i];
        }
};

struct RandomUniformFloat {
        typedef float T;
        static __device__ __forceinline__ void make(const PhiloxBlock &b, float *ret) {
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
                        ret[i] = uniform_of(b.words[i]);
        }
};

struct RandomUniformDouble {
        typedef double T;
        static __device__ __forceinline__ void make(const PhiloxBlock &b, double *ret) {
                ret[0] = uniform_of(b.words[0], b.words[1]);
                ret[1] = uniform_of(b.words[2], b.words[3]);
        }
};

struct RandomNormalFloat {
        typedef float T;
        static __device__ __forceinline__ void make(const PhiloxBlock &b, float *ret) {
                normal_of(uniform_of(b.words[0]), uniform_of(b.words[1]), ret);
                normal_of(uniform_of(b.words[2]), uniform_of(b.words[3]), ret + 2);
        }
};

struct RandomNormalDouble {
        typedef double T;
        static __device__ __forceinline__ void make(const PhiloxBlock &b, double *ret) {
                normal_of(uniform_of(b.words[0], b.words[1]), uniform_of(b.words[2], b.words[3]), ret);
        }
};

/* x[i] is number skip + i of those that begin with block first. */
template <class Make>
static __device__ __forceinline__ void random_numbers(typename Make::T *x, u64 n, u64 seed, u64 stream,
                                                      u64 first, u64 skip) {
        const unsigned per_block = 16 / sizeof(*x);
        u64 over = skip % per_block, blocks = n / per_block + (n % per_block + over + per_block - 1) / per_block;

        first += skip / per_block;
        for (EACH(i, blocks)) {
                typename Make::T numbers[per_block];

                Make::make(philox(seed, first + i, stream), numbers);
#pragma unroll
                for (unsigned k = 0; k < per_block; ++k) {
                        u64 to = i * per_block + k - over;

                        if (to < n)
                                x[to] = numbers[k];
                }
        }
}
