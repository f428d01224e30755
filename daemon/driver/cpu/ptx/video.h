/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_VIDEO_H
#define GPUQ_CPU_PTX_VIDEO_H

/*
 * Video instructions: operations on the two or four parts of a register, and on one part or all of it.
 */

#define PTX_ON_PARTS(name, ...)                                                                    \
        PTX_INLINE int64_t ptx_part_##name(int64_t a, int64_t b) {                                 \
                return __VA_ARGS__;                                                                \
        }
PTX_ON_PARTS(add, a + b)
PTX_ON_PARTS(sub, a - b)
PTX_ON_PARTS(absdiff, a < b ? b - a : a - b)
PTX_ON_PARTS(min, a < b ? a : b)
PTX_ON_PARTS(max, a > b ? a : b)
PTX_ON_PARTS(avrg, (a + b + (a + b >= 0)) >> 1)
PTX_ON_PARTS(set_eq, a == b)
PTX_ON_PARTS(set_ne, a != b)
PTX_ON_PARTS(set_lt, a < b)
PTX_ON_PARTS(set_le, a <= b)
PTX_ON_PARTS(set_gt, a > b)
PTX_ON_PARTS(set_ge, a >= b)
PTX_ON_PARTS(shr_clamp, a >> (b < 32 ? b : 32))
PTX_ON_PARTS(shr_wrap, a >> (b & 31))
PTX_ON_PARTS(first, (void)b, a)
#undef PTX_ON_PARTS

PTX_INLINE __int128 ptx_part_shl_clamp(int64_t a, int64_t b) {
        return (__int128)a * (1ll << (b < 32 ? b : 32));
}
PTX_INLINE __int128 ptx_part_shl_wrap(int64_t a, int64_t b) {
        return (__int128)a * (1ll << (b & 31));
}

PTX_INLINE int64_t ptx_part(uint32_t a, unsigned i, unsigned bits, unsigned is_signed) {
        uint32_t high = a << (32 - bits * (i + 1));

        return is_signed ? (int32_t)high >> (32 - bits) : (int64_t)(high >> (32 - bits));
}

/* Into the range of a part. */
PTX_INLINE int64_t ptx_part_clamp(__int128 x, unsigned bits, unsigned is_signed) {
        int64_t low = is_signed ? -(1ll << (bits - 1)) : 0;
        int64_t high = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;

        return x < low ? low : x > high ? high : (int64_t)x;
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

/* ---- on one part ------------------------------------------------------------------ */

/* Without .sat: 32 bits with the sign of the result. */
PTX_INLINE int64_t ptx_video_fit(__int128 x, unsigned bits, unsigned is_signed,
                                 unsigned saturates) {
        if (saturates)
                return ptx_part_clamp(x, bits, is_signed);
        return is_signed ? (int32_t)x : (int64_t)(uint32_t)x;
}

/* In the place of these bits of c. */
PTX_INLINE uint32_t ptx_video_merge(int64_t x, uint32_t c, unsigned at, unsigned bits) {
        uint32_t mask = (0xffffffffu >> (32 - bits)) << at;

        return (c & ~mask) | ((uint32_t)x << at & mask);
}

/* @a, @b: the parts of the sources; @at, @bits: of the result. @second: what is done with c. */
#define PTX_VIDEO_SCALAR(name, second, signed_, saturates, at, bits, a, b, c_)                     \
        ({                                                                                         \
                uint32_t c = (c_);                                                                 \
                int64_t x = ptx_video_fit(ptx_part_##name(a, b), bits, signed_, saturates);        \
                                                                                                   \
                x = ptx_part_##second(x, ptx_part(c, 0, 32, signed_));                             \
                ptx_video_merge(x, c, at, bits);                                                   \
        })

/* a * b + c, of which the product or c may be negated; that of c is its complement and 1, in 32 bits. */
PTX_INLINE uint32_t ptx_video_mad(int64_t a, int64_t b, uint32_t c, unsigned is_signed,
                                  unsigned saturates, unsigned negates, unsigned negates_c,
                                  unsigned adds_one, unsigned shift) {
        __int128 product = (__int128)a * b;
        __int128 x = negates ? -product : product;

        x += ptx_part(negates_c ? ~c : c, 0, 32, is_signed);
        x += negates_c || adds_one;
        x >>= shift;
        return (uint32_t)(saturates ? ptx_part_clamp(x, 32, is_signed) : (int64_t)x);
}

#endif
