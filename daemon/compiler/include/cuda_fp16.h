/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of type half where the CUDA Toolkit's header is missing. */
#pragma once

#ifdef __CUDACC_RTC__
#error "cuda_fp16.h: the CUDA Toolkit's headers are missing beside NVRTC"
#endif

#define GPUQ_FP16 static __device__ __forceinline__

struct __half;
static __device__ float gpuq_to_float(__half v);
static __device__ void gpuq_from_float(__half *to, float v);
static __device__ __half gpuq_fma(__half a, __half b, __half c);

/* A double as a float that rounds to the same half: its last bit is set if any is lost (round to odd). */
GPUQ_FP16 float gpuq_half_near(double v) {
        float f;
        asm("cvt.rz.f32.f64 %0, %1;" : "=f"(f) : "d"(v));
        return (double)f != v && v == v ? __builtin_bit_cast(float, __builtin_bit_cast(unsigned, f) | 1u) : f;
}

#define GPUQ_ONE       __half
#define GPUQ_TWO       __half2
#define GPUQ_RAW       __half_raw
#define GPUQ_NEAR(v)   gpuq_half_near(v)
#include <gpuq_small_floats.h>
#undef GPUQ_ONE
#undef GPUQ_TWO
#undef GPUQ_RAW
#undef GPUQ_NEAR

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

GPUQ_FP16 float gpuq_to_float(__half v) {
        float f;
        asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.__x));
        return f;
}
GPUQ_FP16 void gpuq_from_float(__half *to, float v) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->__x) : "f"(v));
}
GPUQ_FP16 __half gpuq_fma(__half a, __half b, __half c) {
        asm("fma.rn.f16 %0, %1, %2, %0;" : "+h"(c.__x) : "h"(a.__x), "h"(b.__x));
        return c;
}

/* ---- conversions ----------------------------------------------------------------- */

GPUQ_FP16 float __half2float(__half v) {
        return v;
}
GPUQ_FP16 __half __float2half(float v) {
        return __half(v);
}
GPUQ_FP16 __half __double2half(double v) {
        return __half(v);
}
#define GPUQ_ROUND(suffix, mode)                                                                   \
        GPUQ_FP16 __half __float2half_##suffix(float v) {                                          \
                __half h;                                                                          \
                asm("cvt." mode ".f16.f32 %0, %1;" : "=h"(h.__x) : "f"(v));                        \
                return h;                                                                          \
        }
GPUQ_ROUND(rn, "rn")
GPUQ_ROUND(rz, "rz")
#undef GPUQ_ROUND
#define GPUQ_INTEGER(name, type, ptx, in)                                                          \
        GPUQ_FP16 __half __##name##2half_rn(type v) {                                              \
                __half h;                                                                          \
                asm("cvt.rn.f16." ptx " %0, %1;" : "=h"(h.__x) : in(v));                           \
                return h;                                                                          \
        }                                                                                          \
        GPUQ_FP16 type __half2##name##_rn(__half v) {                                              \
                type i;                                                                            \
                asm("cvt.rni." ptx ".f16 %0, %1;" : "=" in(i) : "h"(v.__x));                       \
                return i;                                                                          \
        }                                                                                          \
        GPUQ_FP16 type __half2##name##_rz(__half v) {                                              \
                type i;                                                                            \
                asm("cvt.rzi." ptx ".f16 %0, %1;" : "=" in(i) : "h"(v.__x));                       \
                return i;                                                                          \
        }                                                                                          \
        GPUQ_FP16 type __half2##name##_ru(__half v) {                                              \
                type i;                                                                            \
                asm("cvt.rpi." ptx ".f16 %0, %1;" : "=" in(i) : "h"(v.__x));                       \
                return i;                                                                          \
        }                                                                                          \
        GPUQ_FP16 type __half2##name##_rd(__half v) {                                              \
                type i;                                                                            \
                asm("cvt.rmi." ptx ".f16 %0, %1;" : "=" in(i) : "h"(v.__x));                       \
                return i;                                                                          \
        }
GPUQ_INTEGER(short, short, "s16", "h")
GPUQ_INTEGER(ushort, unsigned short, "u16", "h")
GPUQ_INTEGER(int, int, "s32", "r")
GPUQ_INTEGER(uint, unsigned, "u32", "r")
GPUQ_INTEGER(ll, long long, "s64", "l")
GPUQ_INTEGER(ull, unsigned long long, "u64", "l")
#undef GPUQ_INTEGER
GPUQ_FP16 short __half_as_short(__half v) {
        return (short)v.__x;
}
GPUQ_FP16 unsigned short __half_as_ushort(__half v) {
        return v.__x;
}
GPUQ_FP16 __half __short_as_half(short v) {
        return __half(__half_raw{(unsigned short)v});
}
GPUQ_FP16 __half __ushort_as_half(unsigned short v) {
        return __half(__half_raw{v});
}
GPUQ_FP16 __half2 __float2half2_rn(float v) {
        return {__half(v), __half(v)};
}
GPUQ_FP16 __half2 __floats2half2_rn(float a, float b) {
        return {__half(a), __half(b)};
}
GPUQ_FP16 __half2 __float22half2_rn(float2 v) {
        return {__half(v.x), __half(v.y)};
}
GPUQ_FP16 float2 __half22float2(__half2 v) {
        return {(float)v.x, (float)v.y};
}
GPUQ_FP16 float __low2float(__half2 v) {
        return v.x;
}
GPUQ_FP16 float __high2float(__half2 v) {
        return v.y;
}
GPUQ_FP16 __half __low2half(__half2 v) {
        return v.x;
}
GPUQ_FP16 __half __high2half(__half2 v) {
        return v.y;
}
GPUQ_FP16 __half2 __halves2half2(__half a, __half b) {
        return {a, b};
}
GPUQ_FP16 __half2 make_half2(__half a, __half b) {
        return {a, b};
}
GPUQ_FP16 __half2 __half2half2(__half v) {
        return {v, v};
}
GPUQ_FP16 __half2 __low2half2(__half2 v) {
        return {v.x, v.x};
}
GPUQ_FP16 __half2 __high2half2(__half2 v) {
        return {v.y, v.y};
}
GPUQ_FP16 __half2 __lows2half2(__half2 a, __half2 b) {
        return {a.x, b.x};
}
GPUQ_FP16 __half2 __highs2half2(__half2 a, __half2 b) {
        return {a.y, b.y};
}
GPUQ_FP16 __half2 __lowhigh2highlow(__half2 v) {
        return {v.y, v.x};
}

#define CUDART_INF_FP16     __ushort_as_half((unsigned short)0x7c00u)
#define CUDART_NAN_FP16     __ushort_as_half((unsigned short)0x7fffu)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bffu)
#define CUDART_ONE_FP16     __ushort_as_half((unsigned short)0x3c00u)
#define CUDART_ZERO_FP16    __ushort_as_half((unsigned short)0x0000u)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000u)

#undef GPUQ_FP16
