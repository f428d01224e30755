/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_DEVICE_H
#define GPUQ_DEVICE_H

/*
 * CUDA C++ for clang without the CUDA Toolkit
 *
 * Included before every source (-include) if clang makes PTX with -nocudainc and -nocudalib: the
 * built-in kernels, and users' source on a machine without NVRTC. It has the keywords and
 * variables of the language, barriers, warp functions, atomics, printf and assert, and the
 * mathematical functions that the hardware has or that are short. It lacks the toolkit's library
 * of functions such as sin() in full accuracy.
 */

#if !defined(__CUDA__) || !defined(__clang__)
#error "gpuq_device.h is for clang -x cuda"
#endif

#define __host__               __attribute__((host))
#define __device__             __attribute__((device))
#define __global__             __attribute__((global))
#define __shared__             __attribute__((shared))
#define __constant__           __attribute__((constant))
#define __managed__            __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__        inline __attribute__((always_inline))
#define __noinline__           __attribute__((noinline))
#define __align__(n)           __attribute__((aligned(n)))
#define __grid_constant__
#define CUDART_INF_F __builtin_huge_valf()
#define CUDART_INF   __builtin_huge_val()

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINTPTR_TYPE__ uintptr_t;
#ifndef NULL
#define NULL __null
#endif

/* ---- vectors --------------------------------------------------------------- */

#define GPUQ_VECTORS(type, name, a2, a4)                                                           \
        struct name##1 {                                                                           \
                type x;                                                                            \
        };                                                                                         \
        struct __attribute__((aligned(a2))) name##2 {                                              \
                type x, y;                                                                         \
        };                                                                                         \
        struct name##3 {                                                                           \
                type x, y, z;                                                                      \
        };                                                                                         \
        struct __attribute__((aligned(a4))) name##4 {                                              \
                type x, y, z, w;                                                                   \
        };                                                                                         \
        static __device__ inline name##1 make_##name##1(type x) {                                  \
                return {x};                                                                        \
        }                                                                                          \
        static __device__ inline name##2 make_##name##2(type x, type y) {                          \
                return {x, y};                                                                     \
        }                                                                                          \
        static __device__ inline name##3 make_##name##3(type x, type y, type z) {                  \
                return {x, y, z};                                                                  \
        }                                                                                          \
        static __device__ inline name##4 make_##name##4(type x, type y, type z, type w) {          \
                return {x, y, z, w};                                                               \
        }
GPUQ_VECTORS(signed char, char, 2, 4)
GPUQ_VECTORS(unsigned char, uchar, 2, 4)
GPUQ_VECTORS(short, short, 4, 8)
GPUQ_VECTORS(unsigned short, ushort, 4, 8)
GPUQ_VECTORS(int, int, 8, 16)
GPUQ_VECTORS(unsigned, uint, 8, 16)
GPUQ_VECTORS(long long, longlong, 16, 16)
GPUQ_VECTORS(unsigned long long, ulonglong, 16, 16)
GPUQ_VECTORS(float, float, 8, 16)
GPUQ_VECTORS(double, double, 16, 16)
#undef GPUQ_VECTORS

struct dim3 {
        unsigned x, y, z;
        __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
            : x(x), y(y), z(z) {
        }
        __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {
        }
        __device__ constexpr operator uint3() const {
                return uint3{x, y, z};
        }
};

/* threadIdx, blockIdx, blockDim, gridDim, warpSize: clang's own */
#include <__clang_cuda_builtin_vars.h>
#define GPUQ_CONVERT(variable)                                                                     \
        __device__ inline __cuda_builtin_##variable##_t::operator dim3() const {                   \
                return dim3(x, y, z);                                                              \
        }                                                                                          \
        __device__ inline __cuda_builtin_##variable##_t::operator uint3() const {                  \
                return {x, y, z};                                                                  \
        }
GPUQ_CONVERT(threadIdx)
GPUQ_CONVERT(blockIdx)
GPUQ_CONVERT(blockDim)
GPUQ_CONVERT(gridDim)
#undef GPUQ_CONVERT

/* ---- barriers and fences ---------------------------------------------------- */

#define GPUQ_DEVICE static __device__ __forceinline__

/* __syncthreads() is built into clang. */
GPUQ_DEVICE int __syncthreads_count(int predicate) {
        return __nvvm_bar0_popc(predicate);
}
GPUQ_DEVICE int __syncthreads_and(int predicate) {
        return __nvvm_bar0_and(predicate);
}
GPUQ_DEVICE int __syncthreads_or(int predicate) {
        return __nvvm_bar0_or(predicate);
}
GPUQ_DEVICE void __syncwarp(unsigned mask = 0xffffffff) {
        __nvvm_bar_warp_sync(mask);
}
GPUQ_DEVICE void __threadfence() {
        __nvvm_membar_gl();
}
GPUQ_DEVICE void __threadfence_block() {
        __nvvm_membar_cta();
}
GPUQ_DEVICE void __threadfence_system() {
        __nvvm_membar_sys();
}
GPUQ_DEVICE void __trap() {
        asm volatile("trap;");
}
GPUQ_DEVICE long long clock64() {
        return __nvvm_read_ptx_sreg_clock64();
}

/* ---- warps ----------------------------------------------------------------- */

GPUQ_DEVICE unsigned __activemask() {
        unsigned mask;
        asm volatile("activemask.b32 %0;" : "=r"(mask));
        return mask;
}
GPUQ_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) {
        return __nvvm_vote_ballot_sync(mask, predicate);
}
GPUQ_DEVICE int __all_sync(unsigned mask, int predicate) {
        return __nvvm_vote_all_sync(mask, predicate);
}
GPUQ_DEVICE int __any_sync(unsigned mask, int predicate) {
        return __nvvm_vote_any_sync(mask, predicate);
}

/* One 32-bit shuffle by the hardware's four ways; 8-byte values go in halves. */
#define GPUQ_SHUFFLE(name, builtin, argument, clamp)                                               \
        GPUQ_DEVICE int name(unsigned mask, int value, argument lane, int width = 32) {            \
                return builtin(mask, value, lane, ((32 - width) << 8) | clamp);                    \
        }                                                                                          \
        GPUQ_DEVICE unsigned name(unsigned mask, unsigned value, argument lane, int width = 32) {  \
                return (unsigned)name(mask, (int)value, lane, width);                              \
        }                                                                                          \
        GPUQ_DEVICE float name(unsigned mask, float value, argument lane, int width = 32) {        \
                return __builtin_bit_cast(                                                         \
                        float, name(mask, __builtin_bit_cast(int, value), lane, width));           \
        }                                                                                          \
        GPUQ_DEVICE unsigned long long name(unsigned mask, unsigned long long value,               \
                                            argument lane, int width = 32) {                       \
                unsigned low = name(mask, (unsigned)value, lane, width);                           \
                unsigned high = name(mask, (unsigned)(value >> 32), lane, width);                  \
                return (unsigned long long)high << 32 | low;                                       \
        }                                                                                          \
        GPUQ_DEVICE long long name(unsigned mask, long long value, argument lane,                  \
                                   int width = 32) {                                               \
                return (long long)name(mask, (unsigned long long)value, lane, width);              \
        }                                                                                          \
        GPUQ_DEVICE unsigned long name(unsigned mask, unsigned long value, argument lane,          \
                                       int width = 32) {                                           \
                return name(mask, (unsigned long long)value, lane, width);                         \
        }                                                                                          \
        GPUQ_DEVICE long name(unsigned mask, long value, argument lane, int width = 32) {          \
                return (long)name(mask, (unsigned long long)value, lane, width);                   \
        }                                                                                          \
        GPUQ_DEVICE double name(unsigned mask, double value, argument lane, int width = 32) {      \
                return __builtin_bit_cast(                                                         \
                        double,                                                                    \
                        name(mask, __builtin_bit_cast(unsigned long long, value), lane, width));   \
        }
GPUQ_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, int, 0x1f)
GPUQ_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, unsigned, 0)
GPUQ_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, unsigned, 0x1f)
GPUQ_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, int, 0x1f)
#undef GPUQ_SHUFFLE

/* ---- atomics --------------------------------------------------------------- */

#define GPUQ_ATOMIC(type, add, exchange, cas)                                                      \
        GPUQ_DEVICE type atomicAdd(type *p, type v) {                                              \
                return __nvvm_atom_add_gen_##add(p, v);                                            \
        }                                                                                          \
        GPUQ_DEVICE type atomicSub(type *p, type v) {                                              \
                return __nvvm_atom_add_gen_##add(p, -v);                                           \
        }                                                                                          \
        GPUQ_DEVICE type atomicExch(type *p, type v) {                                             \
                return __nvvm_atom_xchg_gen_##exchange(p, v);                                      \
        }                                                                                          \
        GPUQ_DEVICE type atomicCAS(type *p, type expected, type v) {                               \
                return __nvvm_atom_cas_gen_##cas(p, expected, v);                                  \
        }                                                                                          \
        GPUQ_DEVICE type atomicAnd(type *p, type v) {                                              \
                return __nvvm_atom_and_gen_##cas(p, v);                                            \
        }                                                                                          \
        GPUQ_DEVICE type atomicOr(type *p, type v) {                                               \
                return __nvvm_atom_or_gen_##cas(p, v);                                             \
        }                                                                                          \
        GPUQ_DEVICE type atomicXor(type *p, type v) {                                              \
                return __nvvm_atom_xor_gen_##cas(p, v);                                            \
        }
GPUQ_ATOMIC(int, i, i, i)
GPUQ_ATOMIC(long long, ll, ll, ll)
#undef GPUQ_ATOMIC

#define GPUQ_ATOMIC_UNSIGNED(type, signed_type)                                                    \
        GPUQ_DEVICE type atomicAdd(type *p, type v) {                                              \
                return atomicAdd((signed_type *)p, (signed_type)v);                                \
        }                                                                                          \
        GPUQ_DEVICE type atomicSub(type *p, type v) {                                              \
                return atomicSub((signed_type *)p, (signed_type)v);                                \
        }                                                                                          \
        GPUQ_DEVICE type atomicExch(type *p, type v) {                                             \
                return atomicExch((signed_type *)p, (signed_type)v);                               \
        }                                                                                          \
        GPUQ_DEVICE type atomicCAS(type *p, type expected, type v) {                               \
                return atomicCAS((signed_type *)p, (signed_type)expected, (signed_type)v);         \
        }                                                                                          \
        GPUQ_DEVICE type atomicAnd(type *p, type v) {                                              \
                return atomicAnd((signed_type *)p, (signed_type)v);                                \
        }                                                                                          \
        GPUQ_DEVICE type atomicOr(type *p, type v) {                                               \
                return atomicOr((signed_type *)p, (signed_type)v);                                 \
        }                                                                                          \
        GPUQ_DEVICE type atomicXor(type *p, type v) {                                              \
                return atomicXor((signed_type *)p, (signed_type)v);                                \
        }
GPUQ_ATOMIC_UNSIGNED(unsigned, int)
GPUQ_ATOMIC_UNSIGNED(unsigned long long, long long)
#undef GPUQ_ATOMIC_UNSIGNED

#define GPUQ_ATOMIC_ORDER(type, suffix)                                                            \
        GPUQ_DEVICE type atomicMin(type *p, type v) {                                              \
                return __nvvm_atom_min_gen_##suffix(p, v);                                         \
        }                                                                                          \
        GPUQ_DEVICE type atomicMax(type *p, type v) {                                              \
                return __nvvm_atom_max_gen_##suffix(p, v);                                         \
        }
GPUQ_ATOMIC_ORDER(int, i)
GPUQ_ATOMIC_ORDER(unsigned, ui)
GPUQ_ATOMIC_ORDER(long long, ll)
GPUQ_ATOMIC_ORDER(unsigned long long, ull)
#undef GPUQ_ATOMIC_ORDER

GPUQ_DEVICE float atomicAdd(float *p, float v) {
        return __nvvm_atom_add_gen_f(p, v);
}
GPUQ_DEVICE float atomicExch(float *p, float v) {
        return __builtin_bit_cast(float, atomicExch((int *)p, __builtin_bit_cast(int, v)));
}
GPUQ_DEVICE double atomicAdd(double *p, double v) {
        return __nvvm_atom_add_gen_d(p, v);
}
GPUQ_DEVICE unsigned atomicInc(unsigned *p, unsigned limit) {
        return __nvvm_atom_inc_gen_ui(p, limit);
}
GPUQ_DEVICE unsigned atomicDec(unsigned *p, unsigned limit) {
        return __nvvm_atom_dec_gen_ui(p, limit);
}

/* ---- loads, bits ------------------------------------------------------------ */

template <class T> GPUQ_DEVICE T __ldg(const T *p) {
        return *p;
}
GPUQ_DEVICE int __popc(unsigned v) {
        return __builtin_popcount(v);
}
GPUQ_DEVICE int __popcll(unsigned long long v) {
        return __builtin_popcountll(v);
}
GPUQ_DEVICE int __clz(int v) {
        return v ? __builtin_clz(v) : 32;
}
GPUQ_DEVICE int __clzll(long long v) {
        return v ? __builtin_clzll(v) : 64;
}
GPUQ_DEVICE int __ffs(int v) {
        return __builtin_ffs(v);
}
GPUQ_DEVICE int __float_as_int(float v) {
        return __builtin_bit_cast(int, v);
}
GPUQ_DEVICE float __int_as_float(int v) {
        return __builtin_bit_cast(float, v);
}
GPUQ_DEVICE long long __double_as_longlong(double v) {
        return __builtin_bit_cast(long long, v);
}
GPUQ_DEVICE double __longlong_as_double(long long v) {
        return __builtin_bit_cast(double, v);
}

/* ---- mathematics ------------------------------------------------------------ */

#define GPUQ_MATH(name, f32, f64)                                                                  \
        GPUQ_DEVICE float name##f(float v) {                                                       \
                return f32(v);                                                                     \
        }                                                                                          \
        GPUQ_DEVICE float name(float v) {                                                          \
                return f32(v);                                                                     \
        }                                                                                          \
        GPUQ_DEVICE double name(double v) {                                                        \
                return f64(v);                                                                     \
        }
GPUQ_MATH(sqrt, __nvvm_sqrt_rn_f, __nvvm_sqrt_rn_d)
GPUQ_MATH(fabs, __nvvm_fabs_f, __nvvm_fabs_d)
GPUQ_MATH(floor, __nvvm_floor_f, __nvvm_floor_d)
GPUQ_MATH(ceil, __nvvm_ceil_f, __nvvm_ceil_d)
GPUQ_MATH(trunc, __nvvm_trunc_f, __nvvm_trunc_d)
GPUQ_MATH(rint, __nvvm_round_f, __nvvm_round_d)
#undef GPUQ_MATH

GPUQ_DEVICE float rsqrtf(float v) {
        return 1.0f / sqrtf(v);
}
GPUQ_DEVICE double rsqrt(double v) {
        return 1.0 / sqrt(v);
}
GPUQ_DEVICE float fmaf(float a, float b, float c) {
        return __nvvm_fma_rn_f(a, b, c);
}
GPUQ_DEVICE double fma(double a, double b, double c) {
        return __nvvm_fma_rn_d(a, b, c);
}
GPUQ_DEVICE float fma(float a, float b, float c) {
        return __nvvm_fma_rn_f(a, b, c);
}
GPUQ_DEVICE float fminf(float a, float b) {
        return __nvvm_fmin_f(a, b);
}
GPUQ_DEVICE float fmaxf(float a, float b) {
        return __nvvm_fmax_f(a, b);
}
GPUQ_DEVICE double fmin(double a, double b) {
        return __nvvm_fmin_d(a, b);
}
GPUQ_DEVICE double fmax(double a, double b) {
        return __nvvm_fmax_d(a, b);
}
GPUQ_DEVICE int abs(int v) {
        return v < 0 ? -v : v;
}
GPUQ_DEVICE long long llabs(long long v) {
        return v < 0 ? -v : v;
}
GPUQ_DEVICE bool isnan(double v) {
        return v != v;
}
GPUQ_DEVICE bool isinf(double v) {
        return fabs(v) == CUDART_INF;
}
template <class T> GPUQ_DEVICE T min(T a, T b) {
        return b < a ? b : a;
}
template <class T> GPUQ_DEVICE T max(T a, T b) {
        return a < b ? b : a;
}
/* The hardware's approximations, as in CUDA. */
GPUQ_DEVICE float __sinf(float v) {
        return __nvvm_sin_approx_f(v);
}
GPUQ_DEVICE float __cosf(float v) {
        return __nvvm_cos_approx_f(v);
}
GPUQ_DEVICE float __expf(float v) {
        return __nvvm_ex2_approx_f(v * 1.4426950408889634f);
}
GPUQ_DEVICE float __logf(float v) {
        return __nvvm_lg2_approx_f(v) * 0.6931471805599453f;
}
GPUQ_DEVICE float __fdividef(float a, float b) {
        return __nvvm_div_approx_f(a, b);
}

/* ---- text ------------------------------------------------------------------- */

/* clang itself turns calls of printf() into the driver's vprintf. */
extern "C" __device__ int printf(const char *format, ...);
extern "C" __device__ void __assertfail(const char *message, const char *file, unsigned line,
                                        const char *function, size_t char_size);
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __PRETTY_FUNCTION__, 1))
#endif

#undef GPUQ_DEVICE

#endif
