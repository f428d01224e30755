/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_FLOAT_H
#define GPUQ_CPU_PTX_FLOAT_H

/*
 * Floating point
 *
 * Half precision is computed in double, which holds sums and products of halves exactly. What PTX
 * calls approximate is computed as exactly as the host's library does.
 */

PTX_INLINE float ptx_f32(uint32_t bits) {
        float x;

        memcpy(&x, &bits, sizeof(x));
        return x;
}
PTX_INLINE uint32_t ptx_of_f32(float x) {
        uint32_t bits;

        memcpy(&bits, &x, sizeof(x));
        return bits;
}
PTX_INLINE double ptx_f64(uint64_t bits) {
        double x;

        memcpy(&x, &bits, sizeof(x));
        return x;
}
PTX_INLINE uint64_t ptx_of_f64(double x) {
        uint64_t bits;

        memcpy(&bits, &x, sizeof(x));
        return bits;
}

/* ---- halves: 5 bits of exponent and 10 of fraction, or 8 and 7 -------------------------- */

PTX_INLINE double ptx_f16(uint16_t bits) {
        int exponent = bits >> 10 & 31, fraction = bits & 1023;
        double x = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);

        return bits >> 15 ? -x : x;
}
PTX_INLINE double ptx_bf16(uint16_t bits) {
        return ptx_f32((uint32_t)bits << 16);
}

/* Directions of rounding. */
enum {
        PTX_NEAREST,
        PTX_TO_ZERO,
        PTX_DOWN,
        PTX_UP,
};

PTX_INLINE double ptx_integral(double x, int direction) {
        switch (direction) {
                case PTX_TO_ZERO:
                        return trunc(x);
                case PTX_DOWN:
                        return floor(x);
                case PTX_UP:
                        return ceil(x);
                default:
                        return rint(x);
        }
}

/* Of a magnitude, of which the sign is known. */
PTX_INLINE int ptx_direction(int direction, int is_negative) {
        if (direction <= PTX_TO_ZERO)
                return direction;
        return (direction == PTX_DOWN) != is_negative ? PTX_TO_ZERO : PTX_UP;
}

/* Rounds to a multiple of the last place. */
PTX_CALL double ptx_round_to(double x, int n_bits, int min_exponent, int direction) {
        int exponent;
        double scaled;

        (void)frexp(x, &exponent);
        if (exponent < min_exponent)
                exponent = min_exponent;
        scaled = ldexp(x, n_bits - exponent);
        return ldexp(ptx_integral(scaled, direction), exponent - n_bits);
}
PTX_CALL uint16_t ptx_make_f16(double x, int direction) {
        uint16_t sign = signbit(x) ? 0x8000 : 0;
        double magnitude = fabs(x);
        int exponent;

        if (x != x)
                return 0x7fff;
        if (isinf(x))
                return sign | 0x7c00;
        direction = ptx_direction(direction, sign != 0);
        magnitude = ptx_round_to(magnitude, 11, -13, direction);
        if (magnitude >= 65536)
                return sign | (direction == PTX_TO_ZERO ? 0x7bff : 0x7c00);
        if (magnitude < 0x1p-14)
                return sign | (uint16_t)(magnitude * 0x1p24);
        (void)frexp(magnitude, &exponent);
        return sign |
               (uint16_t)((exponent + 14) << 10 | ((int)ldexp(magnitude, 11 - exponent) - 1024));
}
PTX_CALL uint16_t ptx_make_bf16(double x, int direction) {
        double rounded;

        if (x != x)
                return 0x7fff;
        if (isinf(x))
                return x < 0 ? 0xff80 : 0x7f80;
        rounded = ptx_round_to(x, 8, -125, direction);
        if (ptx_direction(direction, x < 0) == PTX_TO_ZERO && fabs(rounded) >= 0x1p128)
                rounded = copysign(0x1.fep127, x);
        return (uint16_t)(ptx_of_f32((float)rounded) >> 16);
}
PTX_INLINE uint16_t ptx_of_f16(double x) {
        return ptx_make_f16(x, 0);
}
PTX_INLINE uint16_t ptx_of_bf16(double x) {
        return ptx_make_bf16(x, 0);
}

/* ---- flushing and saturation ---------------------------------------------------------------- */

PTX_INLINE uint32_t ptx_ftz_f32(uint32_t a) {
        return a & 0x7f800000 ? a : a & 0x80000000;
}
PTX_INLINE uint16_t ptx_ftz_f16(uint16_t a) {
        return a & 0x7c00 ? a : a & 0x8000;
}
PTX_INLINE uint32_t ptx_ftz_f16x2(uint32_t a) {
        return (uint32_t)ptx_ftz_f16((uint16_t)(a >> 16)) << 16 | ptx_ftz_f16((uint16_t)a);
}
#define PTX_SATURATE(T, bits)                                                                      \
        PTX_INLINE uint##bits##_t ptx_sat_##T(uint##bits##_t a) {                                  \
                double x = ptx_##T(a);                                                             \
                                                                                                   \
                return x > 0 ? x < 1 ? a : ptx_of_##T(1) : 0;                                      \
        }
/* Negative numbers and -0 become 0, a NaN the canonical one. */
PTX_INLINE uint16_t ptx_relu_f16(uint16_t a) {
        return (a & 0x7fff) > 0x7c00 ? 0x7fff : a >> 15 ? 0 : a;
}
PTX_INLINE uint16_t ptx_relu_bf16(uint16_t a) {
        return (a & 0x7fff) > 0x7f80 ? 0x7fff : a >> 15 ? 0 : a;
}
PTX_SATURATE(f32, 32)
PTX_SATURATE(f64, 64)
PTX_SATURATE(f16, 16)
#undef PTX_SATURATE

/* ---- arithmetic -------------------------------------------------------------------------------- */

/* Volatile operands keep the operation between the two changes of the mode. */
#define PTX_DIRECTED(name, T, F, bits, mode, MODE, expression)                                     \
        PTX_CALL uint##bits##_t ptx_##name##_##mode##_##T(uint##bits##_t a, uint##bits##_t b,      \
                                                          uint##bits##_t c) {                      \
                volatile F x = ptx_##T(a), y = ptx_##T(b), z = ptx_##T(c), result;                 \
                                                                                                   \
                fesetround(MODE);                                                                  \
                result = expression;                                                               \
                fesetround(FE_TONEAREST);                                                          \
                return ptx_of_##T(result);                                                         \
        }
#define PTX_ROUNDED(name, T, F, bits, expression)                                                  \
        PTX_INLINE uint##bits##_t ptx_##name##_rn_##T(uint##bits##_t a, uint##bits##_t b,          \
                                                      uint##bits##_t c) {                          \
                F x = ptx_##T(a), y = ptx_##T(b), z = ptx_##T(c);                                  \
                                                                                                   \
                (void)y, (void)z;                                                                  \
                return ptx_of_##T(expression);                                                     \
        }                                                                                          \
        PTX_DIRECTED(name, T, F, bits, rz, FE_TOWARDZERO, expression)                              \
        PTX_DIRECTED(name, T, F, bits, rm, FE_DOWNWARD, expression)                                \
        PTX_DIRECTED(name, T, F, bits, rp, FE_UPWARD, expression)
#define PTX_ARITHMETIC(T, F, bits, fma_, sqrt_)                                                    \
        PTX_ROUNDED(add, T, F, bits, x + y)                                                        \
        PTX_ROUNDED(sub, T, F, bits, x - y)                                                        \
        PTX_ROUNDED(mul, T, F, bits, x *y)                                                         \
        PTX_ROUNDED(div, T, F, bits, x / y)                                                        \
        PTX_ROUNDED(rcp, T, F, bits, 1 / x)                                                        \
        PTX_ROUNDED(sqrt, T, F, bits, sqrt_(x))                                                    \
        PTX_ROUNDED(fma, T, F, bits, fma_(x, y, z))
PTX_ARITHMETIC(f32, float, 32, fmaf, sqrtf)
PTX_ARITHMETIC(f64, double, 64, fma, sqrt)
#undef PTX_ARITHMETIC
#undef PTX_ROUNDED
#undef PTX_DIRECTED

/* A sum of which double has not enough bits is rounded to odd, so that rounding it again is right. */
PTX_CALL double ptx_add_odd(double x, double y) {
        double sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
        uint64_t bits = ptx_of_f64(sum);

        if (!isfinite(sum) || error == 0 || bits & 1)
                return sum;
        return ptx_f64((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
#define PTX_HALF(T)                                                                                \
        PTX_INLINE uint16_t ptx_add_rn_##T(uint16_t a, uint16_t b, uint16_t c) {                   \
                return ptx_of_##T(ptx_add_odd(ptx_##T(a), ptx_##T(b)));                            \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_sub_rn_##T(uint16_t a, uint16_t b, uint16_t c) {                   \
                return ptx_of_##T(ptx_add_odd(ptx_##T(a), -ptx_##T(b)));                           \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_mul_rn_##T(uint16_t a, uint16_t b, uint16_t c) {                   \
                return ptx_of_##T(ptx_##T(a) * ptx_##T(b));                                        \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_fma_rn_##T(uint16_t a, uint16_t b, uint16_t c) {                   \
                return ptx_of_##T(ptx_add_odd(ptx_##T(a) * ptx_##T(b), ptx_##T(c)));               \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_ex2_##T(uint16_t a) {                                              \
                return ptx_of_##T(exp2(ptx_##T(a)));                                               \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_tanh_##T(uint16_t a) {                                             \
                return ptx_of_##T(tanh(ptx_##T(a)));                                               \
        }
PTX_HALF(f16)
PTX_HALF(bf16)
#undef PTX_HALF

/* Signs, which do not look at the number. */
#define PTX_SIGNS(T, bits, nan)                                                                    \
        PTX_INLINE uint##bits##_t ptx_abs_##T(uint##bits##_t a) {                                  \
                return a & (uint##bits##_t) ~((uint##bits##_t)1 << (bits - 1));                    \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_neg_##T(uint##bits##_t a) {                                  \
                return a ^ (uint##bits##_t)((uint##bits##_t)1 << (bits - 1));                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_copysign_##T(uint##bits##_t a, uint##bits##_t b) {           \
                return ptx_abs_##T(b) | (a ^ ptx_abs_##T(a));                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_min_##T(uint##bits##_t a, uint##bits##_t b) {                \
                double x = ptx_##T(a), y = ptx_##T(b);                                             \
                                                                                                   \
                if (x != x)                                                                        \
                        return y != y ? nan : b;                                                   \
                return y != y ? a : x == y ? a | b : x < y ? a : b;                                \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_max_##T(uint##bits##_t a, uint##bits##_t b) {                \
                double x = ptx_##T(a), y = ptx_##T(b);                                             \
                                                                                                   \
                if (x != x)                                                                        \
                        return y != y ? nan : b;                                                   \
                return y != y ? a : x == y ? a & b : x > y ? a : b;                                \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_min_NaN_##T(uint##bits##_t a, uint##bits##_t b) {            \
                return ptx_##T(a) != ptx_##T(a) || ptx_##T(b) != ptx_##T(b) ? nan                  \
                                                                            : ptx_min_##T(a, b);   \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_max_NaN_##T(uint##bits##_t a, uint##bits##_t b) {            \
                return ptx_##T(a) != ptx_##T(a) || ptx_##T(b) != ptx_##T(b) ? nan                  \
                                                                            : ptx_max_##T(a, b);   \
        }
PTX_SIGNS(f32, 32, 0x7fffffff)
PTX_SIGNS(f64, 64, 0x7fffffffffffffff)
PTX_SIGNS(f16, 16, 0x7fff)
PTX_SIGNS(bf16, 16, 0x7fff)
#undef PTX_SIGNS

#define PTX_PAIR_1(name, T)                                                                        \
        PTX_INLINE uint32_t ptx_##name##_##T##x2(uint32_t a) {                                     \
                return (uint32_t)ptx_##name##_##T((uint16_t)(a >> 16)) << 16 |                     \
                       ptx_##name##_##T((uint16_t)a);                                              \
        }
#define PTX_PAIR_2(name, T)                                                                        \
        PTX_INLINE uint32_t ptx_##name##_##T##x2(uint32_t a, uint32_t b) {                         \
                return (uint32_t)ptx_##name##_##T((uint16_t)(a >> 16), (uint16_t)(b >> 16))        \
                               << 16 |                                                             \
                       ptx_##name##_##T((uint16_t)a, (uint16_t)b);                                 \
        }
#define PTX_PAIR_3(name, T)                                                                        \
        PTX_INLINE uint32_t ptx_##name##_##T##x2(uint32_t a, uint32_t b, uint32_t c) {             \
                return (uint32_t)ptx_##name##_##T((uint16_t)(a >> 16), (uint16_t)(b >> 16),        \
                                                  (uint16_t)(c >> 16))                             \
                               << 16 |                                                             \
                       ptx_##name##_##T((uint16_t)a, (uint16_t)b, (uint16_t)c);                    \
        }
#define PTX_PAIRS(T)                                                                               \
        PTX_PAIR_1(abs, T)                                                                         \
        PTX_PAIR_1(neg, T)                                                                         \
        PTX_PAIR_1(ex2, T)                                                                         \
        PTX_PAIR_1(tanh, T)                                                                        \
        PTX_PAIR_2(min, T)                                                                         \
        PTX_PAIR_2(max, T)                                                                         \
        PTX_PAIR_2(min_NaN, T)                                                                     \
        PTX_PAIR_2(max_NaN, T)                                                                     \
        PTX_PAIR_3(add_rn, T)                                                                      \
        PTX_PAIR_3(sub_rn, T)                                                                      \
        PTX_PAIR_3(mul_rn, T)                                                                      \
        PTX_PAIR_3(fma_rn, T)
PTX_PAIRS(f16)
PTX_PAIRS(bf16)
PTX_PAIR_1(sat, f16)
PTX_PAIR_1(relu, f16)
PTX_PAIR_1(relu, bf16)
#undef PTX_PAIRS
#undef PTX_PAIR_1
#undef PTX_PAIR_2
#undef PTX_PAIR_3

/* ---- functions ------------------------------------------------------------------------------------ */

#define PTX_FUNCTION(name, T, bits, expression)                                                    \
        PTX_INLINE uint##bits##_t ptx_##name##_##T(uint##bits##_t a) {                             \
                return ptx_of_##T(expression);                                                     \
        }
PTX_FUNCTION(sin, f32, 32, sinf(ptx_f32(a)))
PTX_FUNCTION(cos, f32, 32, cosf(ptx_f32(a)))
PTX_FUNCTION(lg2, f32, 32, log2f(ptx_f32(a)))
PTX_FUNCTION(ex2, f32, 32, exp2f(ptx_f32(a)))
PTX_FUNCTION(tanh, f32, 32, tanhf(ptx_f32(a)))
PTX_FUNCTION(rsqrt, f32, 32, (float)(1 / sqrt((double)ptx_f32(a))))
PTX_FUNCTION(rsqrt, f64, 64, 1 / sqrt(ptx_f64(a)))
#undef PTX_FUNCTION

/* The approximate division gives 0 where the reciprocal of the divisor is too small. */
PTX_INLINE uint32_t ptx_div_approx_f32(uint32_t a, uint32_t b) {
        float x = ptx_f32(a), y = ptx_f32(b);

        if (fabsf(y) > 0x1p126f && !isinf(y))
                return isinf(x) || x != x ? 0x7fffffff : (a ^ b) & 0x80000000;
        return ptx_of_f32(x / y);
}

/* ---- tests -------------------------------------------------------------------------------------------- */

#define PTX_TESTS(T, normal)                                                                       \
        PTX_INLINE uint8_t ptx_testp_finite_##T(uint64_t a) {                                      \
                return isfinite(ptx_##T(a)) != 0;                                                  \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_testp_infinite_##T(uint64_t a) {                                    \
                return isinf(ptx_##T(a)) != 0;                                                     \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_testp_number_##T(uint64_t a) {                                      \
                return ptx_##T(a) == ptx_##T(a);                                                   \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_testp_notanumber_##T(uint64_t a) {                                  \
                return ptx_##T(a) != ptx_##T(a);                                                   \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_testp_normal_##T(uint64_t a) {                                      \
                return isfinite(ptx_##T(a)) && fabs(ptx_##T(a)) >= normal;                         \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_testp_subnormal_##T(uint64_t a) {                                   \
                return fabs(ptx_##T(a)) < normal && ptx_##T(a) != 0;                               \
        }
PTX_TESTS(f32, 0x1p-126)
PTX_TESTS(f64, 0x1p-1022)
#undef PTX_TESTS

#endif
