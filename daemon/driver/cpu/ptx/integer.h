/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_INTEGER_H
#define GPUQ_CPU_PTX_INTEGER_H

/*
 * Integers
 *
 * Division by zero does not fault: the quotient has all bits set and the remainder is the
 * dividend, as GPUs compute it.
 */

#define PTX_INTEGER(bits, S, U)                                                                    \
        PTX_INLINE uint##bits##_t ptx_add_##S(uint##bits##_t a, uint##bits##_t b) {                \
                return a + b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_sub_##S(uint##bits##_t a, uint##bits##_t b) {                \
                return a - b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_min_##S(U a, U b) {                                          \
                return a < b ? a : b;                                                              \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_max_##S(U a, U b) {                                          \
                return a > b ? a : b;                                                              \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_sad_##S(U a, U b, uint##bits##_t c) {                        \
                return c + (a < b ? (uint##bits##_t)b - (uint##bits##_t)a                          \
                                  : (uint##bits##_t)a - (uint##bits##_t)b);                        \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_shr_##S(U a, uint32_t n) {                                   \
                return n < bits ? a >> n : (U)(a < 0 ? -1 : 0);                                    \
        }

#define PTX_DIVIDE(bits, S, U, overflows)                                                          \
        PTX_INLINE uint##bits##_t ptx_div_##S(U a, U b) {                                          \
                if (b == 0)                                                                        \
                        return (uint##bits##_t) - 1;                                               \
                return overflows ? (uint##bits##_t)a : (uint##bits##_t)(a / b);                    \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_rem_##S(U a, U b) {                                          \
                if (b == 0)                                                                        \
                        return (uint##bits##_t)a;                                                  \
                return overflows ? 0 : (uint##bits##_t)(a % b);                                    \
        }

#define PTX_MULTIPLY(bits, S, U, W)                                                                \
        PTX_INLINE uint##bits##_t ptx_mul_lo_##S(U a, U b) {                                       \
                return (uint##bits##_t)((W)a * (W)b);                                              \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_mul_hi_##S(U a, U b) {                                       \
                return (uint##bits##_t)((W)a * (W)b >> bits);                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_mad_lo_##S(U a, U b, uint##bits##_t c) {                     \
                return ptx_mul_lo_##S(a, b) + c;                                                   \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_mad_hi_##S(U a, U b, uint##bits##_t c) {                     \
                return ptx_mul_hi_##S(a, b) + c;                                                   \
        }
#define PTX_WIDE(bits, wide, S, U, W)                                                              \
        PTX_INLINE uint##wide##_t ptx_mul_wide_##S(U a, U b) {                                     \
                return (uint##wide##_t)((W)a * (W)b);                                              \
        }                                                                                          \
        PTX_INLINE uint##wide##_t ptx_mad_wide_##S(U a, U b, uint##wide##_t c) {                   \
                return ptx_mul_wide_##S(a, b) + c;                                                 \
        }

#define PTX_BITS(bits)                                                                             \
        PTX_INLINE uint##bits##_t ptx_and_b##bits(uint##bits##_t a, uint##bits##_t b) {            \
                return a & b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_or_b##bits(uint##bits##_t a, uint##bits##_t b) {             \
                return a | b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_xor_b##bits(uint##bits##_t a, uint##bits##_t b) {            \
                return a ^ b;                                                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_not_b##bits(uint##bits##_t a) {                              \
                return ~a;                                                                         \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_cnot_b##bits(uint##bits##_t a) {                             \
                return a == 0;                                                                     \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_shl_b##bits(uint##bits##_t a, uint32_t n) {                  \
                return n < bits ? (uint##bits##_t)(a << n) : 0;                                    \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_shr_b##bits(uint##bits##_t a, uint32_t n) {                  \
                return n < bits ? a >> n : 0;                                                      \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_abs_s##bits(int##bits##_t a) {                               \
                return a < 0 ? (uint##bits##_t)0 - (uint##bits##_t)a : (uint##bits##_t)a;          \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_neg_s##bits(uint##bits##_t a) {                              \
                return (uint##bits##_t)0 - a;                                                      \
        }

PTX_INTEGER(16, u16, uint16_t)
PTX_INTEGER(16, s16, int16_t)
PTX_INTEGER(32, u32, uint32_t)
PTX_INTEGER(32, s32, int32_t)
PTX_INTEGER(64, u64, uint64_t)
PTX_INTEGER(64, s64, int64_t)
PTX_DIVIDE(16, u16, uint16_t, 0)
PTX_DIVIDE(16, s16, int16_t, 0)
PTX_DIVIDE(32, u32, uint32_t, 0)
PTX_DIVIDE(32, s32, int32_t, b == -1 && a == INT32_MIN)
PTX_DIVIDE(64, u64, uint64_t, 0)
PTX_DIVIDE(64, s64, int64_t, b == -1 && a == INT64_MIN)
PTX_MULTIPLY(16, u16, uint16_t, uint32_t)
PTX_MULTIPLY(16, s16, int16_t, int32_t)
PTX_MULTIPLY(32, u32, uint32_t, uint64_t)
PTX_MULTIPLY(32, s32, int32_t, int64_t)
PTX_MULTIPLY(64, u64, uint64_t, unsigned __int128)
PTX_MULTIPLY(64, s64, int64_t, __int128)
PTX_WIDE(16, 32, u16, uint16_t, uint32_t)
PTX_WIDE(16, 32, s16, int16_t, int32_t)
PTX_WIDE(32, 64, u32, uint32_t, uint64_t)
PTX_WIDE(32, 64, s32, int32_t, int64_t)
PTX_BITS(16)
PTX_BITS(32)
PTX_BITS(64)

PTX_INLINE uint8_t ptx_and_pred(uint8_t a, uint8_t b) {
        return a & b;
}
PTX_INLINE uint8_t ptx_or_pred(uint8_t a, uint8_t b) {
        return a | b;
}
PTX_INLINE uint8_t ptx_xor_pred(uint8_t a, uint8_t b) {
        return a ^ b;
}
PTX_INLINE uint8_t ptx_not_pred(uint8_t a) {
        return !a;
}

PTX_INLINE uint32_t ptx_sat_add_s32(int32_t a, int32_t b) {
        int32_t sum;

        if (!__builtin_add_overflow(a, b, &sum))
                return (uint32_t)sum;
        return (uint32_t)(a < 0 ? INT32_MIN : INT32_MAX);
}
PTX_INLINE uint32_t ptx_sat_sub_s32(int32_t a, int32_t b) {
        int32_t difference;

        if (!__builtin_sub_overflow(a, b, &difference))
                return (uint32_t)difference;
        return (uint32_t)(a < 0 ? INT32_MIN : INT32_MAX);
}
PTX_INLINE uint32_t ptx_sat_mad_hi_s32(int32_t a, int32_t b, int32_t c) {
        return ptx_sat_add_s32((int32_t)ptx_mul_hi_s32(a, b), c);
}

PTX_INLINE int64_t ptx_extend_24(int32_t a) {
        return (int32_t)((uint32_t)a << 8) >> 8;
}
PTX_INLINE uint64_t ptx_cut_24(uint32_t a) {
        return a & 0xffffff;
}

/* 24-bit multiplications: the low or high 32 bits of 48. */
#define PTX_MULTIPLY_24(S, U, extend)                                                              \
        PTX_INLINE uint32_t ptx_mul24_lo_##S(U a, U b) {                                           \
                return (uint32_t)(extend(a) * extend(b));                                          \
        }                                                                                          \
        PTX_INLINE uint32_t ptx_mul24_hi_##S(U a, U b) {                                           \
                return (uint32_t)(extend(a) * extend(b) >> 16);                                    \
        }                                                                                          \
        PTX_INLINE uint32_t ptx_mad24_lo_##S(U a, U b, uint32_t c) {                               \
                return ptx_mul24_lo_##S(a, b) + c;                                                 \
        }                                                                                          \
        PTX_INLINE uint32_t ptx_mad24_hi_##S(U a, U b, uint32_t c) {                               \
                return ptx_mul24_hi_##S(a, b) + c;                                                 \
        }
PTX_MULTIPLY_24(u32, uint32_t, ptx_cut_24)
PTX_MULTIPLY_24(s32, int32_t, ptx_extend_24)
#undef PTX_MULTIPLY_24

/*
 * The flag is the carry of an adder, for a subtraction that of a + ~b + 1: set where nothing is borrowed. The ISA
 * calls that a borrow, but what NVRTC makes of a division of __int128 reads it with addc.
 */
#define PTX_CARRY(bits)                                                                            \
        PTX_INLINE uint##bits##_t ptx_addc_##bits(uint##bits##_t a, uint##bits##_t b, uint8_t in,  \
                                                  uint8_t *out) {                                  \
                unsigned __int128 sum = (unsigned __int128)a + b + in;                             \
                                                                                                   \
                *out = (uint8_t)(sum >> bits);                                                     \
                return (uint##bits##_t)sum;                                                        \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_subc_##bits(uint##bits##_t a, uint##bits##_t b, uint8_t in,  \
                                                  uint8_t *out) {                                  \
                return ptx_addc_##bits(a, (uint##bits##_t) ~b, in, out);                           \
        }
PTX_CARRY(32)
PTX_CARRY(64)

PTX_INLINE uint32_t ptx_popc_b32(uint32_t a) {
        return (uint32_t)__builtin_popcount(a);
}
PTX_INLINE uint32_t ptx_popc_b64(uint64_t a) {
        return (uint32_t)__builtin_popcountll(a);
}
PTX_INLINE uint32_t ptx_clz_b32(uint32_t a) {
        return a ? (uint32_t)__builtin_clz(a) : 32;
}
PTX_INLINE uint32_t ptx_clz_b64(uint64_t a) {
        return a ? (uint32_t)__builtin_clzll(a) : 64;
}
PTX_INLINE uint32_t ptx_brev_b32(uint32_t x) {
        x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
        x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
        x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
        return __builtin_bswap32(x);
}
PTX_INLINE uint64_t ptx_brev_b64(uint64_t x) {
        return (uint64_t)ptx_brev_b32((uint32_t)x) << 32 | ptx_brev_b32((uint32_t)(x >> 32));
}

/* The highest bit that differs from the sign. */
PTX_INLINE uint32_t ptx_bfind_u32(uint32_t a) {
        return a ? 31 - ptx_clz_b32(a) : UINT32_MAX;
}
PTX_INLINE uint32_t ptx_bfind_u64(uint64_t a) {
        return a ? 63 - ptx_clz_b64(a) : UINT32_MAX;
}
PTX_INLINE uint32_t ptx_bfind_s32(uint32_t a) {
        return ptx_bfind_u32(a >> 31 ? ~a : a);
}
PTX_INLINE uint32_t ptx_bfind_s64(uint64_t a) {
        return ptx_bfind_u64(a >> 63 ? ~a : a);
}
#define PTX_SHIFT_AMOUNT(S, U, last)                                                               \
        PTX_INLINE uint32_t ptx_bfind_shiftamt_##S(U a) {                                          \
                uint32_t at = ptx_bfind_##S(a);                                                    \
                                                                                                   \
                return at == UINT32_MAX ? at : last - at;                                          \
        }
PTX_SHIFT_AMOUNT(u32, uint32_t, 31)
PTX_SHIFT_AMOUNT(s32, uint32_t, 31)
PTX_SHIFT_AMOUNT(u64, uint64_t, 63)
PTX_SHIFT_AMOUNT(s64, uint64_t, 63)
#undef PTX_SHIFT_AMOUNT

/* Extraction: bits behind the end of the operand are copies of its sign, or zero. */
#define PTX_FIELD(bits)                                                                            \
        PTX_INLINE uint##bits##_t ptx_bfe_u##bits(uint##bits##_t a, uint32_t b, uint32_t c) {      \
                uint32_t at = b & 0xff, n = c & 0xff;                                              \
                uint##bits##_t field = at < bits ? a >> at : 0;                                    \
                                                                                                   \
                return n < bits ? field & (((uint##bits##_t)1 << n) - 1) : field;                  \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_bfe_s##bits(uint##bits##_t a, uint32_t b, uint32_t c) {      \
                uint32_t at = b & 0xff, n = c & 0xff;                                              \
                int##bits##_t field = (int##bits##_t)a >> (at < bits ? at : bits - 1);             \
                                                                                                   \
                if (n == 0)                                                                        \
                        return 0;                                                                  \
                if (n >= bits)                                                                     \
                        return (uint##bits##_t)field;                                              \
                return (uint##bits##_t)((int##bits##_t)((uint##bits##_t)field << (bits - n)) >>    \
                                        (bits - n));                                               \
        }                                                                                          \
        PTX_INLINE uint##bits##_t ptx_bfi_b##bits(uint##bits##_t a, uint##bits##_t b, uint32_t c,  \
                                                  uint32_t d) {                                    \
                uint32_t at = c & 0xff, n = d & 0xff;                                              \
                uint##bits##_t mask =                                                              \
                        n < bits ? ((uint##bits##_t)1 << n) - 1 : (uint##bits##_t) - 1;            \
                                                                                                   \
                if (at >= bits)                                                                    \
                        return b;                                                                  \
                return (b & ~(mask << at)) | (a & mask) << at;                                     \
        }
PTX_FIELD(32)
PTX_FIELD(64)

PTX_INLINE uint32_t ptx_lop3_b32(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
        uint32_t result = 0;

        for (unsigned i = 0; i < 8; i++)
                if (table >> i & 1)
                        result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
        return result;
}

PTX_INLINE uint32_t ptx_shf_l_clamp_b32(uint32_t a, uint32_t b, uint32_t n) {
        n = n < 32 ? n : 32;
        return (uint32_t)((((uint64_t)b << 32 | a) << n) >> 32);
}
PTX_INLINE uint32_t ptx_shf_r_clamp_b32(uint32_t a, uint32_t b, uint32_t n) {
        n = n < 32 ? n : 32;
        return (uint32_t)(((uint64_t)b << 32 | a) >> n);
}
PTX_INLINE uint32_t ptx_shf_l_wrap_b32(uint32_t a, uint32_t b, uint32_t n) {
        return ptx_shf_l_clamp_b32(a, b, n & 31);
}
PTX_INLINE uint32_t ptx_shf_r_wrap_b32(uint32_t a, uint32_t b, uint32_t n) {
        return ptx_shf_r_clamp_b32(a, b, n & 31);
}

/* The sign or zeros above the lowest b bits; a mask of b bits from bit a on. */
PTX_INLINE uint32_t ptx_szext_clamp_u32(uint32_t a, uint32_t b) {
        return ptx_bfe_u32(a, 0, b < 32 ? b : 32);
}
PTX_INLINE uint32_t ptx_szext_wrap_u32(uint32_t a, uint32_t b) {
        return ptx_bfe_u32(a, 0, b & 31);
}
PTX_INLINE uint32_t ptx_szext_clamp_s32(uint32_t a, uint32_t b) {
        return ptx_bfe_s32(a, 0, b < 32 ? b : 32);
}
PTX_INLINE uint32_t ptx_szext_wrap_s32(uint32_t a, uint32_t b) {
        return ptx_bfe_s32(a, 0, b & 31);
}
PTX_INLINE uint32_t ptx_bmsk_clamp_b32(uint32_t a, uint32_t b) {
        return ptx_shl_b32(b < 32 ? (1u << b) - 1 : UINT32_MAX, a);
}
PTX_INLINE uint32_t ptx_bmsk_wrap_b32(uint32_t a, uint32_t b) {
        return ptx_bmsk_clamp_b32(a & 31, b & 31);
}

PTX_INLINE uint32_t ptx_prmt_b32(uint32_t a, uint32_t b, uint32_t selector) {
        uint64_t bytes = (uint64_t)b << 32 | a;
        uint32_t result = 0;

        for (unsigned i = 0; i < 4; i++) {
                uint32_t pick = selector >> 4 * i, byte = bytes >> (pick & 7) * 8 & 0xff;

                if (pick & 8)
                        byte = byte & 0x80 ? 0xff : 0;
                result |= byte << 8 * i;
        }
        return result;
}
#define PTX_PRMT(mode, expression)                                                                 \
        PTX_INLINE uint32_t ptx_prmt_##mode##_b32(uint32_t a, uint32_t b, uint32_t c) {            \
                uint32_t n = c & 3, selector = 0;                                                  \
                                                                                                   \
                for (uint32_t i = 0; i < 4; i++)                                                   \
                        selector |= (uint32_t)(expression) << 4 * i;                               \
                return ptx_prmt_b32(a, b, selector);                                               \
        }
PTX_PRMT(f4e, n + i)
PTX_PRMT(b4e, (n - i) & 7)
PTX_PRMT(rc8, n)
PTX_PRMT(ecl, i > n ? i : n)
PTX_PRMT(ecr, i < n ? i : n)
PTX_PRMT(rc16, (n & 1) * 2 + (i & 1))
#undef PTX_PRMT

#define PTX_DOT(A, B, Ta, Tb)                                                                      \
        PTX_INLINE uint32_t ptx_dp4a_##A##_##B(uint32_t a, uint32_t b, uint32_t c) {               \
                for (unsigned i = 0; i < 4; i++)                                                   \
                        c += (uint32_t)((int32_t)(Ta##8_t)(a >> 8 * i) *                           \
                                        (int32_t)(Tb##8_t)(b >> 8 * i));                           \
                return c;                                                                          \
        }                                                                                          \
        PTX_INLINE uint32_t ptx_dp2a_lo_##A##_##B(uint32_t a, uint32_t b, uint32_t c) {            \
                for (unsigned i = 0; i < 2; i++)                                                   \
                        c += (uint32_t)((int32_t)(Ta##16_t)(a >> 16 * i) *                         \
                                        (int32_t)(Tb##8_t)(b >> 8 * i));                           \
                return c;                                                                          \
        }                                                                                          \
        PTX_INLINE uint32_t ptx_dp2a_hi_##A##_##B(uint32_t a, uint32_t b, uint32_t c) {            \
                return ptx_dp2a_lo_##A##_##B(a, b >> 16, c);                                       \
        }
PTX_DOT(u32, u32, uint, uint)
PTX_DOT(u32, s32, uint, int)
PTX_DOT(s32, u32, int, uint)
PTX_DOT(s32, s32, int, int)
#undef PTX_DOT

/* ---- two of 16 bits in a register ------------------------------------------------------ */

#define PTX_PACKED(name, S, U)                                                                     \
        PTX_INLINE uint32_t ptx_##name##_##S##x2(uint32_t a, uint32_t b) {                         \
                return (uint32_t)ptx_##name##_##S((U)(a >> 16), (U)(b >> 16)) << 16 |              \
                       ptx_##name##_##S((U)a, (U)b);                                               \
        }
#define PTX_RELU_OF(name, S, U, bits)                                                              \
        PTX_INLINE uint##bits##_t ptx_##name##_relu_##S(U a, U b) {                                \
                U x = (U)ptx_##name##_##S(a, b);                                                   \
                                                                                                   \
                return x > 0 ? (uint##bits##_t)x : 0;                                              \
        }
PTX_PACKED(add, u16, uint16_t)
PTX_PACKED(add, s16, uint16_t)
PTX_PACKED(min, u16, uint16_t)
PTX_PACKED(min, s16, int16_t)
PTX_PACKED(max, u16, uint16_t)
PTX_PACKED(max, s16, int16_t)
PTX_RELU_OF(min, s32, int32_t, 32)
PTX_RELU_OF(max, s32, int32_t, 32)
PTX_RELU_OF(min, s16, int16_t, 16)
PTX_RELU_OF(max, s16, int16_t, 16)
PTX_PACKED(min_relu, s16, int16_t)
PTX_PACKED(max_relu, s16, int16_t)
#undef PTX_RELU_OF
#undef PTX_PACKED

#endif
