/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_CONVERT_H
#define GPUQ_CPU_PTX_CONVERT_H

/*
 * Conversions
 *
 * From a floating-point number to an integer: the nearest that the type has. A NaN becomes 0, or
 * the bit of the sign alone where a type has 64 bits.
 */

#define PTX_TO_INTEGER(S, U, low, high, end)                                                       \
        PTX_INLINE U ptx_to_##S(double x, uint64_t nan) {                                          \
                if (x != x)                                                                        \
                        return (U)nan;                                                             \
                if (x <= (double)low)                                                              \
                        return low;                                                                \
                return x >= end ? high : (U)x;                                                     \
        }                                                                                          \
        PTX_INLINE U ptx_clamp_##S(__int128 x) {                                                   \
                return x < (__int128)low ? low : x > (__int128)high ? high : (U)x;                 \
        }
PTX_TO_INTEGER(u8, uint8_t, 0, UINT8_MAX, 0x1p8)
PTX_TO_INTEGER(s8, int8_t, INT8_MIN, INT8_MAX, 0x1p7)
PTX_TO_INTEGER(u16, uint16_t, 0, UINT16_MAX, 0x1p16)
PTX_TO_INTEGER(s16, int16_t, INT16_MIN, INT16_MAX, 0x1p15)
PTX_TO_INTEGER(u32, uint32_t, 0, UINT32_MAX, 0x1p32)
PTX_TO_INTEGER(s32, int32_t, INT32_MIN, INT32_MAX, 0x1p31)
PTX_TO_INTEGER(u64, uint64_t, 0, UINT64_MAX, 0x1p64)
PTX_TO_INTEGER(s64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)
#undef PTX_TO_INTEGER

/* To a narrower type, in each direction. The source is exact in the wider type. */
#define PTX_NARROW(name, From, T, F)                                                               \
        PTX_CALL F ptx_##name##_directed(From from, int mode) {                                    \
                volatile From x = from;                                                            \
                volatile F result;                                                                 \
                                                                                                   \
                if (from == 0) /* else downward makes -0 of an integer */                          \
                        return (F)from;                                                            \
                fesetround(mode);                                                                  \
                result = (F)x;                                                                     \
                fesetround(FE_TONEAREST);                                                          \
                return result;                                                                     \
        }                                                                                          \
        PTX_INLINE F ptx_##name##_rn(From x) {                                                     \
                return (F)x;                                                                       \
        }                                                                                          \
        PTX_INLINE F ptx_##name##_rz(From x) {                                                     \
                return ptx_##name##_directed(x, FE_TOWARDZERO);                                    \
        }                                                                                          \
        PTX_INLINE F ptx_##name##_rm(From x) {                                                     \
                return ptx_##name##_directed(x, FE_DOWNWARD);                                      \
        }                                                                                          \
        PTX_INLINE F ptx_##name##_rp(From x) {                                                     \
                return ptx_##name##_directed(x, FE_UPWARD);                                        \
        }
PTX_NARROW(f64_f32, double, f32, float)
PTX_NARROW(s64_f32, int64_t, f32, float)
PTX_NARROW(u64_f32, uint64_t, f32, float)
PTX_NARROW(s64_f64, int64_t, f64, double)
PTX_NARROW(u64_f64, uint64_t, f64, double)
#undef PTX_NARROW

/* A double that a half is made of: enough bits, and odd where some were lost. */
PTX_INLINE double ptx_u64_half(uint64_t x) {
        return (double)(x < 1ull << 53 ? x : x >> 11 << 11 | (uint64_t)((x & 2047) != 0) << 11);
}
PTX_INLINE double ptx_s64_half(int64_t x) {
        return x < 0 ? -ptx_u64_half(0 - (uint64_t)x) : ptx_u64_half((uint64_t)x);
}

/*
 * To the 10 bits of fraction that tf32 has: to nearest with ties away from zero, to nearest even, or
 * towards zero. @bounds: what is too large becomes the largest number.
 */
#define PTX_TF32(mode, more)                                                                       \
        PTX_INLINE uint32_t ptx_cvt_tf32_##mode(uint32_t a, unsigned bounds) {                     \
                uint32_t rounded = (a & 0x7f800000) == 0x7f800000 ? a : (a + (more)) & ~0x1fffu;   \
                                                                                                   \
                if (bounds && (rounded & 0x7fffffff) == 0x7f800000)                                \
                        rounded = (a & 0x80000000) | 0x7f7fe000;                                   \
                return rounded;                                                                    \
        }
PTX_TF32(rna, 0x1000)
PTX_TF32(rn, 0xfff + (a >> 13 & 1))
PTX_TF32(rz, 0)
#undef PTX_TF32

PTX_INLINE uint32_t ptx_relu_f32(uint32_t a) {
        return (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : a >> 31 ? 0 : a;
}

/* Negative numbers and -0 become 0. */
PTX_INLINE double ptx_relu(double x) {
        return x != x || x > 0 ? x : 0;
}

#endif
