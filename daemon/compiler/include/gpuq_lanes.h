/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products, and CUDA's SIMD functions on the 2 or 4 parts of a register. gpuq_device.h includes it. */
#pragma once


/* Of parts a and b of the type. */
#define GPUQ_PARTS(name, n_bits, type, expression)                                                 \
        GPUQ_DEVICE unsigned name(unsigned x, unsigned y) {                                        \
                unsigned result = 0;                                                               \
                for (unsigned at = 0; at < 32; at += n_bits) {                                     \
                        int a = (type)(x >> at), b = (type)(y >> at);                              \
                        (void)b;                                                                   \
                        result |= ((unsigned)(expression) & ((1u << n_bits) - 1)) << at;           \
                }                                                                                  \
                return result;                                                                     \
        }
#define GPUQ_BETWEEN(v, low, high) ((v) < (low) ? (low) : (v) > (high) ? (high) : (v))
#define GPUQ_PAIRS(stem, type, expression)                                                         \
        GPUQ_PARTS(stem##4, 8, type##8_t, expression)                                              \
        GPUQ_PARTS(stem##2, 16, type##16_t, expression)
GPUQ_PAIRS(__vadd, uint, a + b)
GPUQ_PAIRS(__vsub, uint, a - b)
GPUQ_PARTS(__vaddss4, 8, int8_t, GPUQ_BETWEEN(a + b, -128, 127))
GPUQ_PARTS(__vaddss2, 16, int16_t, GPUQ_BETWEEN(a + b, -32768, 32767))
GPUQ_PARTS(__vaddus4, 8, uint8_t, GPUQ_BETWEEN(a + b, 0, 255))
GPUQ_PARTS(__vaddus2, 16, uint16_t, GPUQ_BETWEEN(a + b, 0, 65535))
GPUQ_PARTS(__vsubss4, 8, int8_t, GPUQ_BETWEEN(a - b, -128, 127))
GPUQ_PARTS(__vsubss2, 16, int16_t, GPUQ_BETWEEN(a - b, -32768, 32767))
GPUQ_PAIRS(__vsubus, uint, a > b ? a - b : 0)
GPUQ_PAIRS(__vavgu, uint, (a + b + 1) >> 1)
GPUQ_PAIRS(__vavgs, int, (a + b + (a + b >= 0)) >> 1)
GPUQ_PAIRS(__vhaddu, uint, (a + b) >> 1)
GPUQ_PAIRS(__vabsdiffu, uint, a > b ? a - b : b - a)
GPUQ_PAIRS(__vabsdiffs, int, a > b ? a - b : b - a)
GPUQ_PAIRS(__vmaxu, uint, a > b ? a : b)
GPUQ_PAIRS(__vminu, uint, a < b ? a : b)
GPUQ_PAIRS(__vmaxs, int, a > b ? a : b)
GPUQ_PAIRS(__vmins, int, a < b ? a : b)
#define GPUQ_COMPARISON(name, type, comparison)                                                    \
        GPUQ_PAIRS(__vcmp##name, type, comparison ? -1 : 0)                                        \
        GPUQ_PAIRS(__vset##name, type, comparison)
GPUQ_COMPARISON(eq, uint, a == b)
GPUQ_COMPARISON(ne, uint, a != b)
GPUQ_COMPARISON(ltu, uint, a < b)
GPUQ_COMPARISON(leu, uint, a <= b)
GPUQ_COMPARISON(gtu, uint, a > b)
GPUQ_COMPARISON(geu, uint, a >= b)
GPUQ_COMPARISON(lts, int, a < b)
GPUQ_COMPARISON(les, int, a <= b)
GPUQ_COMPARISON(gts, int, a > b)
GPUQ_COMPARISON(ges, int, a >= b)
#undef GPUQ_COMPARISON
GPUQ_PAIRS(gpuq_negate, int, -a)
GPUQ_PAIRS(gpuq_absolute, int, a < 0 ? -a : a)
GPUQ_PARTS(gpuq_negate_saturated4, 8, int8_t, GPUQ_BETWEEN(-a, -128, 127))
GPUQ_PARTS(gpuq_negate_saturated2, 16, int16_t, GPUQ_BETWEEN(-a, -32768, 32767))
GPUQ_PARTS(gpuq_absolute_saturated4, 8, int8_t, GPUQ_BETWEEN(a < 0 ? -a : a, -128, 127))
GPUQ_PARTS(gpuq_absolute_saturated2, 16, int16_t, GPUQ_BETWEEN(a < 0 ? -a : a, -32768, 32767))
#undef GPUQ_PAIRS
#undef GPUQ_BETWEEN
#undef GPUQ_PARTS

#define GPUQ_OF_ONE(name, of)                                                                      \
        GPUQ_DEVICE unsigned name##4(unsigned v) {                                                 \
                return of##4(v, 0);                                                                \
        }                                                                                          \
        GPUQ_DEVICE unsigned name##2(unsigned v) {                                                 \
                return of##2(v, 0);                                                                \
        }
GPUQ_OF_ONE(__vneg, gpuq_negate)
GPUQ_OF_ONE(__vabs, gpuq_absolute)
GPUQ_OF_ONE(__vnegss, gpuq_negate_saturated)
GPUQ_OF_ONE(__vabsss, gpuq_absolute_saturated)
#undef GPUQ_OF_ONE

/* Sums over the parts of a and b of two types. */
#define GPUQ_SUM(head, step, n_bits, type_a, type_b, expression)                                   \
        GPUQ_DEVICE head {                                                                         \
                for (unsigned i = 0; i < 32 / step; i++) {                                         \
                        int a = (type_a)(x >> i * step), b = (type_b)(y >> i * n_bits);            \
                        z += expression;                                                           \
                }                                                                                  \
                return z;                                                                          \
        }
GPUQ_SUM(unsigned __vsadu4(unsigned x, unsigned y, unsigned z = 0), 8, 8, uint8_t, uint8_t, a > b ? a - b : b - a)
GPUQ_SUM(unsigned __vsads4(unsigned x, unsigned y, unsigned z = 0), 8, 8, int8_t, int8_t, a > b ? a - b : b - a)
GPUQ_SUM(unsigned __vsadu2(unsigned x, unsigned y, unsigned z = 0), 16, 16, uint16_t, uint16_t, a > b ? a - b : b - a)
GPUQ_SUM(unsigned __vsads2(unsigned x, unsigned y, unsigned z = 0), 16, 16, int16_t, int16_t, a > b ? a - b : b - a)
GPUQ_SUM(int __dp4a(int x, int y, int z), 8, 8, int8_t, int8_t, a *b)
GPUQ_SUM(unsigned __dp4a(unsigned x, unsigned y, unsigned z), 8, 8, uint8_t, uint8_t, (unsigned)(a * b))
GPUQ_SUM(int __dp2a_lo(int x, int y, int z), 16, 8, int16_t, int8_t, a *b)
GPUQ_SUM(unsigned __dp2a_lo(unsigned x, unsigned y, unsigned z), 16, 8, uint16_t, uint8_t, (unsigned)a *(unsigned)b)
#undef GPUQ_SUM
GPUQ_DEVICE int __dp2a_hi(int x, int y, int z) {
        return __dp2a_lo(x, y >> 16, z);
}
GPUQ_DEVICE unsigned __dp2a_hi(unsigned x, unsigned y, unsigned z) {
        return __dp2a_lo(x, y >> 16, z);
}
#define GPUQ_BYTES(v) __builtin_bit_cast(unsigned, v)
GPUQ_DEVICE int __dp4a(char4 x, char4 y, int z) {
        return __dp4a((int)GPUQ_BYTES(x), (int)GPUQ_BYTES(y), z);
}
GPUQ_DEVICE unsigned __dp4a(uchar4 x, uchar4 y, unsigned z) {
        return __dp4a(GPUQ_BYTES(x), GPUQ_BYTES(y), z);
}
GPUQ_DEVICE int __dp2a_lo(short2 x, char4 y, int z) {
        return __dp2a_lo((int)GPUQ_BYTES(x), (int)GPUQ_BYTES(y), z);
}
GPUQ_DEVICE int __dp2a_hi(short2 x, char4 y, int z) {
        return __dp2a_hi((int)GPUQ_BYTES(x), (int)GPUQ_BYTES(y), z);
}
GPUQ_DEVICE unsigned __dp2a_lo(ushort2 x, uchar4 y, unsigned z) {
        return __dp2a_lo(GPUQ_BYTES(x), GPUQ_BYTES(y), z);
}
GPUQ_DEVICE unsigned __dp2a_hi(ushort2 x, uchar4 y, unsigned z) {
        return __dp2a_hi(GPUQ_BYTES(x), GPUQ_BYTES(y), z);
}
#undef GPUQ_BYTES

