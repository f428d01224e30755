/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_VIDEO_H
#define GPUQ_CPU_PTX_VIDEO_H

/*
 * Video instructions: operations on the two or four parts of a register.
 */

#define PTX_ON_PARTS(name, expression)                                                             \
        PTX_INLINE int64_t ptx_part_##name(int64_t a, int64_t b) {                                 \
                return expression;                                                                 \
        }
PTX_ON_PARTS(add, a + b)
PTX_ON_PARTS(sub, a - b)
PTX_ON_PARTS(absdiff, a < b ? b - a : a - b)
PTX_ON_PARTS(min, a < b ? a : b)
PTX_ON_PARTS(max, a > b ? a : b)
PTX_ON_PARTS(avrg, (a + b + 1) >> 1)
PTX_ON_PARTS(set_eq, a == b)
PTX_ON_PARTS(set_ne, a != b)
PTX_ON_PARTS(set_lt, a < b)
PTX_ON_PARTS(set_le, a <= b)
PTX_ON_PARTS(set_gt, a > b)
PTX_ON_PARTS(set_ge, a >= b)
#undef PTX_ON_PARTS

PTX_INLINE int64_t ptx_part(uint32_t a, unsigned i, unsigned bits, unsigned is_signed) {
        uint32_t high = a << (32 - bits * (i + 1));

        return is_signed ? (int32_t)high >> (32 - bits) : (int64_t)(high >> (32 - bits));
}

/* Into the range of a part. */
PTX_INLINE int64_t ptx_part_clamp(int64_t x, unsigned bits, unsigned is_signed) {
        int64_t low = is_signed ? -(1 << (bits - 1)) : 0;
        int64_t high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;

        return x < low ? low : x > high ? high : x;
}

/* Each part by itself; or with @adds the sum of all results and c. */
#define PTX_VIDEO(name, n, a_signed, b_signed, signed_, saturates, adds, a_, b_, c_)               \
        ({                                                                                         \
                uint32_t a = (a_), b = (b_), c = (c_), whole = 0;                                  \
                                                                                                   \
                for (unsigned i = 0; i < (n); i++) {                                               \
                        int64_t x = ptx_part_##name(ptx_part(a, i, 32 / (n), a_signed),            \
                                                    ptx_part(b, i, 32 / (n), b_signed));           \
                                                                                                   \
                        c += (uint32_t)x;                                                          \
                        if (saturates)                                                             \
                                x = ptx_part_clamp(x, 32 / (n), signed_);                          \
                        whole |= ((uint32_t)x & (0xffffffffu >> (32 - 32 / (n))))                  \
                                 << i * (32 / (n));                                                \
                }                                                                                  \
                (adds) ? c : whole;                                                                \
        })

#endif
