/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of 16 bits where the CUDA Toolkit's headers are missing
 *
 * Included once for f16 and once for bf16, with GPUQ_ONE, GPUQ_TWO and GPUQ_RAW as the names of the types
 * and these functions before it: gpuq_to_float(GPUQ_ONE), gpuq_from_float(GPUQ_ONE *, float), and
 * gpuq_fma(a, b, c). Sums, products and quotients of floats that are rounded again are those of the
 * numbers themselves: a float has more than twice their bits.
 */

#define GPUQ_SMALL static __device__ __forceinline__

#ifndef GPUQ_WIDE
#define GPUQ_WIDE
/* An integer as a double that rounds to the same number of fewer bits: its last bit is set if any is lost (round to odd). */
GPUQ_SMALL double gpuq_wide(long long v) {
        double d = __ll2double_rz(v);
        return (long long)d != v ? __builtin_bit_cast(double, __builtin_bit_cast(unsigned long long, d) | 1ull) : d;
}
GPUQ_SMALL double gpuq_wide(unsigned long long v) {
        double d = __ull2double_rz(v);
        return (unsigned long long)d != v ? __builtin_bit_cast(double, __builtin_bit_cast(unsigned long long, d) | 1ull) : d;
}
#endif

struct GPUQ_RAW {
        unsigned short x;
};

struct __attribute__((aligned(2))) GPUQ_ONE {
        unsigned short __x;

        GPUQ_ONE() = default;
        __device__ GPUQ_ONE(GPUQ_RAW raw) : __x(raw.x) {
        }
        __device__ GPUQ_ONE(float v);
        __device__ GPUQ_ONE(double v) : GPUQ_ONE(GPUQ_NEAR(v)) {
        }
#define GPUQ_FROM(type, wide)                                                                      \
        __device__ GPUQ_ONE(type v) : GPUQ_ONE(wide(v)) {                                          \
        }
        GPUQ_FROM(short, float)
        GPUQ_FROM(unsigned short, float)
        GPUQ_FROM(int, double)
        GPUQ_FROM(unsigned, double)
        GPUQ_FROM(long long, gpuq_wide)
        GPUQ_FROM(unsigned long long, gpuq_wide)
#undef GPUQ_FROM
        __device__ GPUQ_ONE(long v) : GPUQ_ONE((long long)v) {
        }
        __device__ GPUQ_ONE(unsigned long v) : GPUQ_ONE((unsigned long long)v) {
        }
        __device__ operator float() const;
        __device__ operator GPUQ_RAW() const {
                return {__x};
        }
        __device__ operator bool() const {
                return (__x & 0x7fff) != 0;
        }
#define GPUQ_TO(type)                                                                              \
        __device__ operator type() const {                                                         \
                return (type)(float)*this;                                                         \
        }
        GPUQ_TO(short)
        GPUQ_TO(unsigned short)
        GPUQ_TO(int)
        GPUQ_TO(unsigned)
        GPUQ_TO(long)
        GPUQ_TO(unsigned long)
        GPUQ_TO(long long)
        GPUQ_TO(unsigned long long)
#undef GPUQ_TO
/* Out of range gives the nearest number, and NaN 0; no instruction converts to a byte. */
#define GPUQ_TO_BYTE(type, least, most)                                                            \
        __device__ operator type() const {                                                         \
                int v = __float2int_rz((float)*this);                                              \
                return (type)(v < least ? least : v > most ? most : v);                            \
        }
        GPUQ_TO_BYTE(signed char, -128, 127)
        GPUQ_TO_BYTE(unsigned char, 0, 255)
        GPUQ_TO_BYTE(char, -128, 127)
#undef GPUQ_TO_BYTE
};

struct __attribute__((aligned(4))) GPUQ_TWO {
        GPUQ_ONE x, y;

        GPUQ_TWO() = default;
        __device__ GPUQ_TWO(GPUQ_ONE x_, GPUQ_ONE y_) : x(x_), y(y_) {
        }
};

__device__ inline GPUQ_ONE::operator float() const {
        return gpuq_to_float(*this);
}
__device__ inline GPUQ_ONE::GPUQ_ONE(float v) {
        gpuq_from_float(this, v);
}

/* ---- one number, and two at a time ------------------------------------------- */

#define GPUQ_UNARY(name, expression)                                                               \
        GPUQ_SMALL GPUQ_ONE name(GPUQ_ONE a) {                                                     \
                return expression;                                                                 \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO GPUQ_NAME_2(name)(GPUQ_TWO a) {                                        \
                return {name(a.x), name(a.y)};                                                     \
        }
#define GPUQ_BINARY(name, expression)                                                              \
        GPUQ_SMALL GPUQ_ONE name(GPUQ_ONE a, GPUQ_ONE b) {                                         \
                return expression;                                                                 \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO GPUQ_NAME_2(name)(GPUQ_TWO a, GPUQ_TWO b) {                            \
                return {name(a.x, b.x), name(a.y, b.y)};                                           \
        }
#define GPUQ_COMPARE(name, expression)                                                             \
        GPUQ_SMALL bool __h##name(GPUQ_ONE a_, GPUQ_ONE b_) {                                      \
                float a = a_, b = b_;                                                              \
                return expression;                                                                 \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO __h##name##2(GPUQ_TWO a, GPUQ_TWO b) {                                 \
                return {GPUQ_ONE(__h##name(a.x, b.x) ? 1.0f : 0.0f),                               \
                        GPUQ_ONE(__h##name(a.y, b.y) ? 1.0f : 0.0f)};                              \
        }                                                                                          \
        GPUQ_SMALL unsigned __h##name##2_mask(GPUQ_TWO a, GPUQ_TWO b) {                            \
                return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);   \
        }                                                                                          \
        GPUQ_SMALL bool __hb##name##2(GPUQ_TWO a, GPUQ_TWO b) {                                    \
                return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                 \
        }
#define GPUQ_NAME_2(name) name##2
GPUQ_UNARY(__hneg, GPUQ_ONE(GPUQ_RAW{(unsigned short)(a.__x ^ 0x8000)}))
GPUQ_UNARY(__habs, GPUQ_ONE(GPUQ_RAW{(unsigned short)(a.__x & 0x7fff)}))
GPUQ_BINARY(__hadd, GPUQ_ONE((float)a + (float)b))
GPUQ_BINARY(__hsub, GPUQ_ONE((float)a - (float)b))
GPUQ_BINARY(__hmul, GPUQ_ONE((float)a * (float)b))
GPUQ_BINARY(__hmax, GPUQ_ONE(fmaxf((float)a, (float)b)))
GPUQ_BINARY(__hmin, GPUQ_ONE(fminf((float)a, (float)b)))
GPUQ_COMPARE(eq, a == b)
GPUQ_COMPARE(ne, a < b || a > b)
GPUQ_COMPARE(lt, a < b)
GPUQ_COMPARE(le, a <= b)
GPUQ_COMPARE(gt, a > b)
GPUQ_COMPARE(ge, a >= b)
GPUQ_COMPARE(equ, !(a < b || a > b))
GPUQ_COMPARE(neu, a != b)
GPUQ_COMPARE(ltu, !(a >= b))
GPUQ_COMPARE(leu, !(a > b))
GPUQ_COMPARE(gtu, !(a <= b))
GPUQ_COMPARE(geu, !(a < b))
#undef GPUQ_COMPARE
#undef GPUQ_NAME_2

GPUQ_SMALL GPUQ_ONE __hdiv(GPUQ_ONE a, GPUQ_ONE b) {
        return GPUQ_ONE((float)a / (float)b);
}
GPUQ_SMALL GPUQ_TWO __h2div(GPUQ_TWO a, GPUQ_TWO b) {
        return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)};
}
GPUQ_SMALL GPUQ_ONE __hfma(GPUQ_ONE a, GPUQ_ONE b, GPUQ_ONE c) {
        return gpuq_fma(a, b, c);
}
GPUQ_SMALL GPUQ_TWO __hfma2(GPUQ_TWO a, GPUQ_TWO b, GPUQ_TWO c) {
        return {gpuq_fma(a.x, b.x, c.x), gpuq_fma(a.y, b.y, c.y)};
}
GPUQ_SMALL GPUQ_ONE gpuq_saturate(GPUQ_ONE v) {
        return GPUQ_ONE(__saturatef(v));
}
GPUQ_SMALL GPUQ_TWO gpuq_saturate(GPUQ_TWO v) {
        return {gpuq_saturate(v.x), gpuq_saturate(v.y)};
}
GPUQ_SMALL GPUQ_ONE gpuq_relu(GPUQ_ONE v) {
        return GPUQ_ONE((float)v < 0 ? 0.0f : (float)v);
}
GPUQ_SMALL GPUQ_TWO gpuq_relu(GPUQ_TWO v) {
        return {gpuq_relu(v.x), gpuq_relu(v.y)};
}
#define GPUQ_ALSO(name, type, one)                                                                 \
        GPUQ_SMALL type name##_rn(type a, type b) {                                                \
                return name(a, b);                                                                 \
        }                                                                                          \
        GPUQ_SMALL type name##_sat(type a, type b) {                                               \
                return gpuq_saturate(name(a, b));                                                  \
        }
GPUQ_ALSO(__hadd, GPUQ_ONE, )
GPUQ_ALSO(__hsub, GPUQ_ONE, )
GPUQ_ALSO(__hmul, GPUQ_ONE, )
GPUQ_ALSO(__hadd2, GPUQ_TWO, )
GPUQ_ALSO(__hsub2, GPUQ_TWO, )
GPUQ_ALSO(__hmul2, GPUQ_TWO, )
#undef GPUQ_ALSO
#define GPUQ_ALSO(name, type)                                                                      \
        GPUQ_SMALL type name##_sat(type a, type b, type c) {                                       \
                return gpuq_saturate(name(a, b, c));                                               \
        }                                                                                          \
        GPUQ_SMALL type name##_relu(type a, type b, type c) {                                      \
                return gpuq_relu(name(a, b, c));                                                   \
        }
GPUQ_ALSO(__hfma, GPUQ_ONE)
GPUQ_ALSO(__hfma2, GPUQ_TWO)
#undef GPUQ_ALSO

GPUQ_SMALL bool __hisnan(GPUQ_ONE v) {
        return isnan((float)v);
}
GPUQ_SMALL GPUQ_TWO __hisnan2(GPUQ_TWO v) {
        return {GPUQ_ONE(__hisnan(v.x) ? 1.0f : 0.0f), GPUQ_ONE(__hisnan(v.y) ? 1.0f : 0.0f)};
}
GPUQ_SMALL int __hisinf(GPUQ_ONE v) {
        return !isinf((float)v) ? 0 : (float)v < 0 ? -1 : 1;
}
GPUQ_SMALL GPUQ_ONE __hmax_nan(GPUQ_ONE a, GPUQ_ONE b) {
        return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b);
}
GPUQ_SMALL GPUQ_ONE __hmin_nan(GPUQ_ONE a, GPUQ_ONE b) {
        return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b);
}

/* Of the float, rounded once more. */
#define GPUQ_NAME_2(name) h2##name
#define GPUQ_FUNCTION(name, expression)                                                            \
        GPUQ_SMALL GPUQ_ONE h##name(GPUQ_ONE a) {                                                  \
                float v = a;                                                                       \
                return GPUQ_ONE((float)(expression));                                              \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO h2##name(GPUQ_TWO a) {                                                 \
                return {h##name(a.x), h##name(a.y)};                                               \
        }
GPUQ_FUNCTION(sqrt, sqrtf(v))
GPUQ_FUNCTION(rsqrt, rsqrtf(v))
GPUQ_FUNCTION(rcp, 1.0f / v)
GPUQ_FUNCTION(ceil, ceilf(v))
GPUQ_FUNCTION(floor, floorf(v))
GPUQ_FUNCTION(trunc, truncf(v))
GPUQ_FUNCTION(rint, rintf(v))
#ifdef __GPUQ_CPU__
GPUQ_FUNCTION(exp, expf(v))
GPUQ_FUNCTION(exp2, exp2f(v))
GPUQ_FUNCTION(exp10, exp10f(v))
GPUQ_FUNCTION(log, logf(v))
GPUQ_FUNCTION(log2, log2f(v))
GPUQ_FUNCTION(log10, log10f(v))
GPUQ_FUNCTION(sin, sinf(v))
GPUQ_FUNCTION(cos, cosf(v))
GPUQ_FUNCTION(tanh, tanhf(v))
#else
GPUQ_FUNCTION(exp, __expf(v))
GPUQ_FUNCTION(exp2, __nvvm_ex2_approx_f(v))
GPUQ_FUNCTION(exp10, __exp10f(v))
GPUQ_FUNCTION(log, __logf(v))
GPUQ_FUNCTION(log2, __log2f(v))
GPUQ_FUNCTION(log10, __log10f(v))
#endif
#undef GPUQ_FUNCTION
#undef GPUQ_NAME_2
#undef GPUQ_UNARY
#undef GPUQ_BINARY

/* ---- operators ----------------------------------------------------------------- */

#define GPUQ_OPERATOR(sign, one, two)                                                              \
        GPUQ_SMALL GPUQ_ONE operator sign(const GPUQ_ONE &a, const GPUQ_ONE &b) {                  \
                return one(a, b);                                                                  \
        }                                                                                          \
        GPUQ_SMALL GPUQ_ONE &operator sign##=(GPUQ_ONE & a, const GPUQ_ONE &b) {                   \
                return a = one(a, b);                                                              \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO operator sign(const GPUQ_TWO &a, const GPUQ_TWO &b) {                  \
                return two(a, b);                                                                  \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO &operator sign##=(GPUQ_TWO & a, const GPUQ_TWO &b) {                   \
                return a = two(a, b);                                                              \
        }
GPUQ_OPERATOR(+, __hadd, __hadd2)
GPUQ_OPERATOR(-, __hsub, __hsub2)
GPUQ_OPERATOR(*, __hmul, __hmul2)
GPUQ_OPERATOR(/, __hdiv, __h2div)
#undef GPUQ_OPERATOR
#define GPUQ_OPERATOR(sign, name)                                                                  \
        GPUQ_SMALL bool operator sign(const GPUQ_ONE &a, const GPUQ_ONE &b) {                      \
                return __h##name(a, b);                                                            \
        }                                                                                          \
        GPUQ_SMALL bool operator sign(const GPUQ_TWO &a, const GPUQ_TWO &b) {                      \
                return __hb##name##2(a, b);                                                        \
        }
GPUQ_OPERATOR(==, eq)
GPUQ_OPERATOR(!=, neu)
GPUQ_OPERATOR(<, lt)
GPUQ_OPERATOR(<=, le)
GPUQ_OPERATOR(>, gt)
GPUQ_OPERATOR(>=, ge)
#undef GPUQ_OPERATOR
GPUQ_SMALL GPUQ_ONE operator+(const GPUQ_ONE &a) {
        return a;
}
GPUQ_SMALL GPUQ_ONE operator-(const GPUQ_ONE &a) {
        return __hneg(a);
}
GPUQ_SMALL GPUQ_TWO operator-(const GPUQ_TWO &a) {
        return __hneg2(a);
}
GPUQ_SMALL GPUQ_ONE &operator++(GPUQ_ONE &a) {
        return a += GPUQ_ONE(1.0f);
}
GPUQ_SMALL GPUQ_ONE &operator--(GPUQ_ONE &a) {
        return a -= GPUQ_ONE(1.0f);
}

/* ---- shuffles and atomics ------------------------------------------------------ */

#define GPUQ_SHUFFLE(name, argument)                                                               \
        GPUQ_SMALL GPUQ_ONE name(unsigned mask, GPUQ_ONE value, argument lane, int width = 32) {   \
                return GPUQ_ONE(GPUQ_RAW{                                                          \
                        (unsigned short)name(mask, (unsigned)value.__x, lane, width)});            \
        }                                                                                          \
        GPUQ_SMALL GPUQ_TWO name(unsigned mask, GPUQ_TWO value, argument lane, int width = 32) {   \
                return __builtin_bit_cast(                                                         \
                        GPUQ_TWO,                                                                  \
                        name(mask, __builtin_bit_cast(unsigned, value), lane, width));             \
        }
GPUQ_SHUFFLE(__shfl_sync, int)
GPUQ_SHUFFLE(__shfl_up_sync, unsigned)
GPUQ_SHUFFLE(__shfl_down_sync, unsigned)
GPUQ_SHUFFLE(__shfl_xor_sync, int)
#undef GPUQ_SHUFFLE

/* By the word that the number lies in. */
GPUQ_SMALL GPUQ_ONE atomicAdd(GPUQ_ONE *p, GPUQ_ONE v) {
        unsigned *word = (unsigned *)((unsigned long long)p & ~3ull), old = *word, seen;
        unsigned shift = (unsigned)((unsigned long long)p & 2) * 8;
        GPUQ_ONE before;

        do {
                seen = old;
                before.__x = (unsigned short)(seen >> shift);
                old = atomicCAS(word, seen,
                                (seen & ~(0xffffu << shift)) | (unsigned)__hadd(before, v).__x << shift);
        } while (old != seen);
        return before;
}
GPUQ_SMALL GPUQ_TWO atomicAdd(GPUQ_TWO *p, GPUQ_TWO v) {
        unsigned *word = (unsigned *)p, old = *word, seen;
        GPUQ_TWO before;

        do {
                seen = old;
                before = __builtin_bit_cast(GPUQ_TWO, seen);
                old = atomicCAS(word, seen, __builtin_bit_cast(unsigned, __hadd2(before, v)));
        } while (old != seen);
        return before;
}

#undef GPUQ_SMALL
