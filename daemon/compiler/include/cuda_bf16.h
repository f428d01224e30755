/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of type bfloat16 where the CUDA Toolkit's header is missing. */
#pragma once

#ifdef __CUDACC_RTC__
#error "cuda_bf16.h: the CUDA Toolkit's headers are missing beside NVRTC"
#endif

#define GPUQ_BF16 static __device__ __forceinline__

struct __nv_bfloat16;
static __device__ float gpuq_to_float(__nv_bfloat16 v);
static __device__ void gpuq_from_float(__nv_bfloat16 *to, float v);
static __device__ __nv_bfloat16 gpuq_fma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c);

/* A double as a float that rounds to the same number: its last bit is set if any is lost (round to odd). */
GPUQ_BF16 float gpuq_bfloat16_near(double v) {
        float f;
        asm("cvt.rz.f32.f64 %0, %1;" : "=f"(f) : "d"(v));
        return (double)f != v && v == v ? __builtin_bit_cast(float, __builtin_bit_cast(unsigned, f) | 1u) : f;
}

#define GPUQ_ONE     __nv_bfloat16
#define GPUQ_TWO     __nv_bfloat162
#define GPUQ_RAW     __nv_bfloat16_raw
#define GPUQ_NEAR(v) gpuq_bfloat16_near(v)
#include <gpuq_small_floats.h>
#undef GPUQ_ONE
#undef GPUQ_TWO
#undef GPUQ_RAW
#undef GPUQ_NEAR

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

GPUQ_BF16 float gpuq_to_float(__nv_bfloat16 v) {
        return __builtin_bit_cast(float, (unsigned)v.__x << 16);
}
/* To the nearest, and of two to the even one. Architectures before 8.0 have no instruction. */
GPUQ_BF16 void gpuq_from_float(__nv_bfloat16 *to, float v) {
        unsigned bits = __builtin_bit_cast(unsigned, v);

        to->__x = v != v ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/* The product of two is exact in a double, and the sum is rounded to odd before it is rounded. */
GPUQ_BF16 __nv_bfloat16 gpuq_fma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
        double product = (double)(float)a * (double)(float)b, addend = (double)(float)c;
        double sum = __nvvm_add_rz_d(product, addend);
        double rest = __nvvm_add_rn_d(__nvvm_add_rn_d(product, -sum), addend);

        if (rest != 0 && rest == rest)
                sum = __builtin_bit_cast(double, __builtin_bit_cast(unsigned long long, sum) | 1ull);
        return __nv_bfloat16(sum);
}

/* ---- conversions ----------------------------------------------------------------- */

GPUQ_BF16 float __bfloat162float(__nv_bfloat16 v) {
        return v;
}
GPUQ_BF16 __nv_bfloat16 __float2bfloat16(float v) {
        return __nv_bfloat16(v);
}
GPUQ_BF16 __nv_bfloat16 __float2bfloat16_rn(float v) {
        return __nv_bfloat16(v);
}
GPUQ_BF16 __nv_bfloat16 __float2bfloat16_rz(float v) {
        return v != v ? __nv_bfloat16(v)
                      : __nv_bfloat16(__nv_bfloat16_raw{
                                (unsigned short)(__builtin_bit_cast(unsigned, v) >> 16)});
}
GPUQ_BF16 __nv_bfloat16 __double2bfloat16(double v) {
        return __nv_bfloat16(v);
}
#define GPUQ_INTEGER(name, type)                                                                   \
        GPUQ_BF16 __nv_bfloat16 __##name##2bfloat16_rn(type v) {                                   \
                return __nv_bfloat16(v);                                                           \
        }                                                                                          \
        GPUQ_BF16 type __bfloat162##name##_rn(__nv_bfloat16 v) {                                   \
                return (type)rintf(v);                                                             \
        }                                                                                          \
        GPUQ_BF16 type __bfloat162##name##_rz(__nv_bfloat16 v) {                                   \
                return (type)truncf(v);                                                            \
        }
GPUQ_INTEGER(int, int)
GPUQ_INTEGER(uint, unsigned)
GPUQ_INTEGER(short, short)
GPUQ_INTEGER(ushort, unsigned short)
GPUQ_INTEGER(ll, long long)
GPUQ_INTEGER(ull, unsigned long long)
#undef GPUQ_INTEGER
GPUQ_BF16 short __bfloat16_as_short(__nv_bfloat16 v) {
        return (short)v.__x;
}
GPUQ_BF16 unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) {
        return v.__x;
}
GPUQ_BF16 __nv_bfloat16 __short_as_bfloat16(short v) {
        return __nv_bfloat16(__nv_bfloat16_raw{(unsigned short)v});
}
GPUQ_BF16 __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) {
        return __nv_bfloat16(__nv_bfloat16_raw{v});
}
GPUQ_BF16 __nv_bfloat162 __float2bfloat162_rn(float v) {
        return {__nv_bfloat16(v), __nv_bfloat16(v)};
}
GPUQ_BF16 __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
        return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
GPUQ_BF16 __nv_bfloat162 __float22bfloat162_rn(float2 v) {
        return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)};
}
GPUQ_BF16 float2 __bfloat1622float2(__nv_bfloat162 v) {
        return {(float)v.x, (float)v.y};
}
GPUQ_BF16 float __low2float(__nv_bfloat162 v) {
        return v.x;
}
GPUQ_BF16 float __high2float(__nv_bfloat162 v) {
        return v.y;
}
GPUQ_BF16 __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) {
        return v.x;
}
GPUQ_BF16 __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) {
        return v.y;
}
GPUQ_BF16 __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
        return {a, b};
}
GPUQ_BF16 __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
        return {a, b};
}
GPUQ_BF16 __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 v) {
        return {v, v};
}

#undef GPUQ_BF16
