/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_NARROW_H
#define GPUQ_CPU_PTX_NARROW_H

/*
 * Floating-point numbers of 8 bits: e4m3 has 3 bits of fraction and no infinity, e5m2 has 2. What
 * is too large becomes the largest number.
 */

#define PTX_NARROW_TYPE(T, n_fraction, bias, largest)                                              \
        PTX_CALL uint8_t ptx_to_##T(double x, unsigned relu) {                                     \
                uint8_t sign = signbit(x) ? 0x80 : 0;                                              \
                double magnitude = fabs(x);                                                        \
                int exponent;                                                                      \
                                                                                                   \
                if (x != x)                                                                        \
                        return 0x7f;                                                               \
                if (relu && sign)                                                                  \
                        return 0;                                                                  \
                magnitude = isinf(x) ? x * x                                                       \
                                     : ptx_round_to(magnitude, (n_fraction) + 1, 2 - (bias),       \
                                                    PTX_NEAREST);                                  \
                if (magnitude >= ptx_##T(largest))                                                 \
                        return sign | (largest);                                                   \
                if (magnitude < ldexp(1, 1 - (bias)))                                              \
                        return sign | (uint8_t)ldexp(magnitude, (bias)-1 + (n_fraction));          \
                (void)frexp(magnitude, &exponent);                                                 \
                return sign | (uint8_t)(((exponent - 2 + (bias)) << (n_fraction)) +                \
                                        (int)ldexp(magnitude, (n_fraction) + 1 - exponent));       \
        }                                                                                          \
        PTX_INLINE uint32_t ptx_from_##T##x2(uint16_t a) {                                         \
                return (uint32_t)ptx_of_f16(ptx_##T((uint8_t)(a >> 8))) << 16 |                    \
                       ptx_of_f16(ptx_##T((uint8_t)a));                                            \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_to_##T##x2_f32(uint32_t a, uint32_t b, unsigned relu) {            \
                return (uint16_t)(ptx_to_##T(ptx_f32(a), relu) << 8 |                              \
                                  ptx_to_##T(ptx_f32(b), relu));                                   \
        }                                                                                          \
        PTX_INLINE uint16_t ptx_to_##T##x2_f16(uint32_t a, unsigned relu) {                        \
                return (uint16_t)(ptx_to_##T(ptx_f16((uint16_t)(a >> 16)), relu) << 8 |            \
                                  ptx_to_##T(ptx_f16((uint16_t)a), relu));                         \
        }

PTX_INLINE double ptx_e4m3(uint8_t a) {
        int exponent = a >> 3 & 15, fraction = a & 7;
        double x = (a & 0x7f) == 0x7f ? NAN
                   : exponent         ? ldexp(8 + fraction, exponent - 10)
                                      : ldexp(fraction, -9);

        return a >> 7 ? -x : x;
}

/* The upper half of an f16. */
PTX_INLINE double ptx_e5m2(uint8_t a) {
        return ptx_f16((uint16_t)(a << 8));
}

PTX_NARROW_TYPE(e4m3, 3, 7, 0x7e)
PTX_NARROW_TYPE(e5m2, 2, 15, 0x7b)
#undef PTX_NARROW_TYPE

#endif
