/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_COMPARE_H
#define GPUQ_CPU_PTX_COMPARE_H

/*
 * Comparisons. Those of floating-point numbers that end with u are true where one is a NaN.
 */

#define PTX_COMPARE(S, U)                                                                          \
        PTX_INLINE uint8_t ptx_eq_##S(U a, U b) {                                                  \
                return a == b;                                                                     \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_ne_##S(U a, U b) {                                                  \
                return a != b;                                                                     \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_lt_##S(U a, U b) {                                                  \
                return a < b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_le_##S(U a, U b) {                                                  \
                return a <= b;                                                                     \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_gt_##S(U a, U b) {                                                  \
                return a > b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint8_t ptx_ge_##S(U a, U b) {                                                  \
                return a >= b;                                                                     \
        }
PTX_COMPARE(u16, uint16_t)
PTX_COMPARE(s16, int16_t)
PTX_COMPARE(b16, uint16_t)
PTX_COMPARE(u32, uint32_t)
PTX_COMPARE(s32, int32_t)
PTX_COMPARE(b32, uint32_t)
PTX_COMPARE(u64, uint64_t)
PTX_COMPARE(s64, int64_t)
PTX_COMPARE(b64, uint64_t)
#undef PTX_COMPARE

#define PTX_ORDER(name, T, bits, expression)                                                       \
        PTX_INLINE uint8_t ptx_##name##_##T(uint##bits##_t a, uint##bits##_t b) {                  \
                double x = ptx_##T(a), y = ptx_##T(b);                                             \
                                                                                                   \
                return expression;                                                                 \
        }
#define PTX_ORDERS(T, bits)                                                                        \
        PTX_ORDER(eq, T, bits, x == y)                                                             \
        PTX_ORDER(ne, T, bits, x<y || x> y)                                                        \
        PTX_ORDER(lt, T, bits, x < y)                                                              \
        PTX_ORDER(le, T, bits, x <= y)                                                             \
        PTX_ORDER(gt, T, bits, x > y)                                                              \
        PTX_ORDER(ge, T, bits, x >= y)                                                             \
        PTX_ORDER(equ, T, bits, !(x < y || x > y))                                                 \
        PTX_ORDER(neu, T, bits, x != y)                                                            \
        PTX_ORDER(ltu, T, bits, !(x >= y))                                                         \
        PTX_ORDER(leu, T, bits, !(x > y))                                                          \
        PTX_ORDER(gtu, T, bits, !(x <= y))                                                         \
        PTX_ORDER(geu, T, bits, !(x < y))                                                          \
        PTX_ORDER(num, T, bits, x == x && y == y)                                                  \
        PTX_ORDER(nan, T, bits, x != x || y != y)
PTX_ORDERS(f32, 32)
PTX_ORDERS(f64, 64)
PTX_ORDERS(f16, 16)
PTX_ORDERS(bf16, 16)
#undef PTX_ORDERS
#undef PTX_ORDER

#endif
