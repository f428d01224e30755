/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_DEVICE_H
#define GPUQ_DEVICE_H

/*
 * CUDA C++ for clang without the CUDA Toolkit
 *
 * Included before every source (-include) if clang makes PTX with -nocudainc and -nocudalib: the
 * built-in kernels, and users' source on a machine without NVRTC. It has the keywords and
 * variables of the language, barriers, warp functions, atomics, printf and assert, and the
 * mathematical functions that the hardware has or that are short.
 *
 * For the CPU driver (__GPUQ_CPU__ is defined) it also declares the toolkit's library of functions
 * such as sin() in full accuracy, by the names of NVIDIA's libdevice; the host's library has them
 * (compiler/ptx/translate_extern.c). For GPUs it lacks them.
 */

#if !defined(__CUDA__) || !defined(__clang__)
#error "gpuq_device.h is for clang -x cuda"
#endif

#define __host__   __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
/* "used", or clang takes one that is static for what it is initialized to, as nothing here changes it. */
#define __constant__           __attribute__((constant)) __attribute__((used))
#define __managed__            __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__        inline __attribute__((always_inline))
#define __noinline__           __attribute__((noinline))
#define __align__(n)           __attribute__((aligned(n)))
/* Clang has no attribute for it; without it a kernel would run in clusters of one block. */
#define __cluster_dims__(...)                                                                      \
        _Pragma("GCC error \"no __cluster_dims__ with clang: the launch gives the size\"")
#define __grid_constant__
#define __CUDACC__           1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 4
#define CUDA_VERSION         12040
#define CUDART_VERSION       12040
#define CUDART_INF_F         __builtin_huge_valf()
#define CUDART_INF           __builtin_huge_val()
#define INFINITY             __builtin_huge_valf()
#define NAN                  __builtin_nanf("")
#define HUGE_VAL             __builtin_huge_val()
#define HUGE_VALF            __builtin_huge_valf()
#define M_E                  2.71828182845904523536
#define M_LOG2E              1.44269504088896340736
#define M_LOG10E             0.43429448190325182765
#define M_LN2                0.69314718055994530942
#define M_LN10               2.30258509299404568402
#define M_PI                 3.14159265358979323846
#define M_PI_2               1.57079632679489661923
#define M_PI_4               0.78539816339744830962
#define M_1_PI               0.31830988618379067154
#define M_2_PI               0.63661977236758134308
#define M_2_SQRTPI           1.12837916709551257390
#define M_SQRT2              1.41421356237309504880
#define M_SQRT1_2            0.70710678118654752440

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
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long ssize_t;
typedef long clock_t;
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
GPUQ_VECTORS(long, long, 16, 16)
GPUQ_VECTORS(unsigned long, ulong, 16, 16)
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

/*
 * Clang takes it that no intrinsic changes a static variable whose address nobody takes, such as most
 * __shared__ ones, and moves their loads before a barrier. It takes that of no assembly.
 */
#define GPUQ_NO_MOVES() asm volatile("" ::: "memory")

GPUQ_DEVICE void gpuq_syncthreads() {
        GPUQ_NO_MOVES();
        __syncthreads();
        GPUQ_NO_MOVES();
}
/* Built into clang, too. */
#define __syncthreads() gpuq_syncthreads()

GPUQ_DEVICE int __syncthreads_count(int predicate) {
        GPUQ_NO_MOVES();
        int count = __nvvm_bar0_popc(predicate);
        GPUQ_NO_MOVES();
        return count;
}
GPUQ_DEVICE int __syncthreads_and(int predicate) {
        GPUQ_NO_MOVES();
        int all = __nvvm_bar0_and(predicate);
        GPUQ_NO_MOVES();
        return all;
}
GPUQ_DEVICE int __syncthreads_or(int predicate) {
        GPUQ_NO_MOVES();
        int any = __nvvm_bar0_or(predicate);
        GPUQ_NO_MOVES();
        return any;
}
GPUQ_DEVICE void __syncwarp(unsigned mask = 0xffffffff) {
        GPUQ_NO_MOVES();
        __nvvm_bar_warp_sync(mask);
        GPUQ_NO_MOVES();
}
GPUQ_DEVICE void __threadfence() {
        GPUQ_NO_MOVES();
        __nvvm_membar_gl();
        GPUQ_NO_MOVES();
}
GPUQ_DEVICE void __threadfence_block() {
        GPUQ_NO_MOVES();
        __nvvm_membar_cta();
        GPUQ_NO_MOVES();
}
GPUQ_DEVICE void __threadfence_system() {
        GPUQ_NO_MOVES();
        __nvvm_membar_sys();
        GPUQ_NO_MOVES();
}
GPUQ_DEVICE void __trap() {
        asm volatile("trap;");
}
GPUQ_DEVICE void __brkpt() {
        asm volatile("brkpt;");
}
GPUQ_DEVICE void __nanosleep(unsigned ns) {
#if __CUDA_ARCH__ >= 700
        asm volatile("nanosleep.u32 %0;" ::"r"(ns));
#else
        (void)ns;
#endif
}
GPUQ_DEVICE clock_t clock() {
        return (clock_t)__nvvm_read_ptx_sreg_clock64();
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

GPUQ_DEVICE int __uni_sync(unsigned mask, int predicate) {
        return __nvvm_vote_uni_sync(mask, predicate);
}
template <class T> GPUQ_DEVICE unsigned __match_any_sync(unsigned mask, T value) {
        unsigned lanes;
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a match takes a number of 4 or 8 bytes");
        if constexpr (sizeof(T) == 4)
                asm volatile("match.any.sync.b32 %0, %1, %2;"
                             : "=r"(lanes)
                             : "r"(__builtin_bit_cast(unsigned, value)), "r"(mask));
        else
                asm volatile("match.any.sync.b64 %0, %1, %2;"
                             : "=r"(lanes)
                             : "l"(__builtin_bit_cast(unsigned long long, value)), "r"(mask));
        return lanes;
}
template <class T> GPUQ_DEVICE unsigned __match_all_sync(unsigned mask, T value, int *predicate) {
        unsigned same = __match_any_sync(mask, value), all = __ballot_sync(mask, 1);
        *predicate = same == all;
        return same == all ? all : 0;
}

#if __CUDA_ARCH__ >= 800
#define GPUQ_REDUCE(name, instruction, type)                                                       \
        GPUQ_DEVICE type name(unsigned mask, type value) {                                         \
                type result;                                                                       \
                asm volatile("redux.sync." instruction " %0, %1, %2;"                              \
                             : "=r"(result)                                                        \
                             : "r"(value), "r"(mask));                                             \
                return result;                                                                     \
        }
GPUQ_REDUCE(__reduce_add_sync, "add.s32", int)
GPUQ_REDUCE(__reduce_add_sync, "add.u32", unsigned)
GPUQ_REDUCE(__reduce_min_sync, "min.s32", int)
GPUQ_REDUCE(__reduce_min_sync, "min.u32", unsigned)
GPUQ_REDUCE(__reduce_max_sync, "max.s32", int)
GPUQ_REDUCE(__reduce_max_sync, "max.u32", unsigned)
GPUQ_REDUCE(__reduce_and_sync, "and.b32", unsigned)
GPUQ_REDUCE(__reduce_or_sync, "or.b32", unsigned)
GPUQ_REDUCE(__reduce_xor_sync, "xor.b32", unsigned)
#undef GPUQ_REDUCE
#endif

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

/* The same with a scope; that of a GPU is wide enough for a block, and the machine's for both. */
#define GPUQ_SCOPED(name)                                                                          \
        template <class T, class... Values>                                                        \
        GPUQ_DEVICE auto name##_block(T *p, Values... v)->decltype(name(p, v...)) {                \
                return name(p, v...);                                                              \
        }                                                                                          \
        template <class T, class... Values>                                                        \
        GPUQ_DEVICE auto name##_system(T *p, Values... v)->decltype(name(p, v...)) {               \
                __threadfence_system();                                                            \
                return name(p, v...);                                                              \
        }
GPUQ_SCOPED(atomicAdd)
GPUQ_SCOPED(atomicSub)
GPUQ_SCOPED(atomicExch)
GPUQ_SCOPED(atomicCAS)
GPUQ_SCOPED(atomicAnd)
GPUQ_SCOPED(atomicOr)
GPUQ_SCOPED(atomicXor)
GPUQ_SCOPED(atomicMin)
GPUQ_SCOPED(atomicMax)
GPUQ_SCOPED(atomicInc)
GPUQ_SCOPED(atomicDec)
#undef GPUQ_SCOPED

/* ---- loads, bits ------------------------------------------------------------ */

#define GPUQ_LOAD(name)                                                                            \
        template <class T> GPUQ_DEVICE T name(const T *p) {                                        \
                return *p;                                                                         \
        }
#define GPUQ_STORE(name)                                                                           \
        template <class T> GPUQ_DEVICE void name(T *p, T value) {                                  \
                *p = value;                                                                        \
        }
GPUQ_LOAD(__ldg)
GPUQ_LOAD(__ldca)
GPUQ_LOAD(__ldcg)
GPUQ_LOAD(__ldcs)
GPUQ_LOAD(__ldlu)
GPUQ_LOAD(__ldcv)
GPUQ_STORE(__stwb)
GPUQ_STORE(__stcg)
GPUQ_STORE(__stcs)
GPUQ_STORE(__stwt)
#undef GPUQ_LOAD
#undef GPUQ_STORE
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
GPUQ_DEVICE int __ffsll(long long v) {
        return __builtin_ffsll(v);
}
GPUQ_DEVICE unsigned __brev(unsigned v) {
        return __builtin_bitreverse32(v);
}
GPUQ_DEVICE unsigned long long __brevll(unsigned long long v) {
        return __builtin_bitreverse64(v);
}
GPUQ_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
        return __nvvm_prmt(x, y, selector & 0x7777);
}
GPUQ_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
        return (unsigned)((((unsigned long long)high << 32 | low) << (n & 31)) >> 32);
}
GPUQ_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
        return (unsigned)(((unsigned long long)high << 32 | low) >> (n & 31));
}
GPUQ_DEVICE int __mulhi(int x, int y) {
        return (int)((long long)x * y >> 32);
}
GPUQ_DEVICE unsigned __umulhi(unsigned x, unsigned y) {
        return (unsigned)((unsigned long long)x * y >> 32);
}
GPUQ_DEVICE long long __mul64hi(long long x, long long y) {
        return __nvvm_mulhi_ll(x, y);
}
GPUQ_DEVICE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
        return __nvvm_mulhi_ull(x, y);
}
GPUQ_DEVICE int __mul24(int x, int y) {
        return __nvvm_mul24_i(x, y);
}
GPUQ_DEVICE unsigned __umul24(unsigned x, unsigned y) {
        return __nvvm_mul24_ui(x, y);
}
GPUQ_DEVICE unsigned __sad(int x, int y, unsigned z) {
        return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x);
}
GPUQ_DEVICE unsigned __usad(unsigned x, unsigned y, unsigned z) {
        return z + (x > y ? x - y : y - x);
}
GPUQ_DEVICE int __hadd(int x, int y) {
        return (int)(((long long)x + y) >> 1);
}
GPUQ_DEVICE int __rhadd(int x, int y) {
        return (int)(((long long)x + y + 1) >> 1);
}
GPUQ_DEVICE unsigned __uhadd(unsigned x, unsigned y) {
        return (unsigned)(((unsigned long long)x + y) >> 1);
}
GPUQ_DEVICE unsigned __urhadd(unsigned x, unsigned y) {
        return (unsigned)(((unsigned long long)x + y + 1) >> 1);
}
GPUQ_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned n) {
        return (unsigned)((((unsigned long long)high << 32 | low) << (n > 32 ? 32 : n)) >> 32);
}
GPUQ_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n) {
        return (unsigned)(((unsigned long long)high << 32 | low) >> (n > 32 ? 32 : n));
}
GPUQ_DEVICE unsigned __float_as_uint(float v) {
        return __builtin_bit_cast(unsigned, v);
}
GPUQ_DEVICE float __uint_as_float(unsigned v) {
        return __builtin_bit_cast(float, v);
}
GPUQ_DEVICE int __double2hiint(double v) {
        return (int)(__builtin_bit_cast(unsigned long long, v) >> 32);
}
GPUQ_DEVICE int __double2loint(double v) {
        return (int)__builtin_bit_cast(unsigned long long, v);
}
GPUQ_DEVICE double __hiloint2double(int high, int low) {
        return __builtin_bit_cast(double, (unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

/* Out of range gives the nearest number, as the instructions do. */
#define GPUQ_CONVERSION(name, from, to, instruction, in, out)                                      \
        GPUQ_DEVICE to name(from v) {                                                              \
                to result;                                                                         \
                asm(instruction " %0, %1;" : out(result) : in(v));                                 \
                return result;                                                                     \
        }
#define GPUQ_CONVERSIONS(name, from, to, types, in, out)                                           \
        GPUQ_CONVERSION(name##_rn, from, to, "cvt.rni." types, in, out)                            \
        GPUQ_CONVERSION(name##_rz, from, to, "cvt.rzi." types, in, out)                            \
        GPUQ_CONVERSION(name##_ru, from, to, "cvt.rpi." types, in, out)                            \
        GPUQ_CONVERSION(name##_rd, from, to, "cvt.rmi." types, in, out)
GPUQ_CONVERSIONS(__float2int, float, int, "s32.f32", "f", "=r")
GPUQ_CONVERSIONS(__float2uint, float, unsigned, "u32.f32", "f", "=r")
GPUQ_CONVERSIONS(__float2ll, float, long long, "s64.f32", "f", "=l")
GPUQ_CONVERSIONS(__float2ull, float, unsigned long long, "u64.f32", "f", "=l")
GPUQ_CONVERSIONS(__double2int, double, int, "s32.f64", "d", "=r")
GPUQ_CONVERSIONS(__double2uint, double, unsigned, "u32.f64", "d", "=r")
GPUQ_CONVERSIONS(__double2ll, double, long long, "s64.f64", "d", "=l")
GPUQ_CONVERSIONS(__double2ull, double, unsigned long long, "u64.f64", "d", "=l")
#undef GPUQ_CONVERSIONS
#undef GPUQ_CONVERSION
/* In assembly, too: clang rounds its own __nvvm_i2f_rz() to the nearest. */
#define GPUQ_CONVERSION(name, from, to, types, in, out)                                            \
        GPUQ_CONVERSION_BY(name##_rn, from, to, "cvt.rn." types, in, out)                          \
        GPUQ_CONVERSION_BY(name##_rz, from, to, "cvt.rz." types, in, out)                          \
        GPUQ_CONVERSION_BY(name##_ru, from, to, "cvt.rp." types, in, out)                          \
        GPUQ_CONVERSION_BY(name##_rd, from, to, "cvt.rm." types, in, out)
#define GPUQ_CONVERSION_BY(name, from, to, instruction, in, out)                                   \
        GPUQ_DEVICE to name(from v) {                                                              \
                to result;                                                                         \
                asm(instruction " %0, %1;" : out(result) : in(v));                                 \
                return result;                                                                     \
        }
GPUQ_CONVERSION(__int2float, int, float, "f32.s32", "r", "=f")
GPUQ_CONVERSION(__uint2float, unsigned, float, "f32.u32", "r", "=f")
GPUQ_CONVERSION(__ll2float, long long, float, "f32.s64", "l", "=f")
GPUQ_CONVERSION(__ull2float, unsigned long long, float, "f32.u64", "l", "=f")
GPUQ_CONVERSION(__ll2double, long long, double, "f64.s64", "l", "=d")
GPUQ_CONVERSION(__ull2double, unsigned long long, double, "f64.u64", "l", "=d")
GPUQ_CONVERSION(__double2float, double, float, "f32.f64", "d", "=f")
#undef GPUQ_CONVERSION_BY
#undef GPUQ_CONVERSION
GPUQ_DEVICE double __int2double_rn(int v) {
        return v;
}
GPUQ_DEVICE double __uint2double_rn(unsigned v) {
        return v;
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

#include <gpuq_lanes.h>

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
/* Half way goes to the even number; clang's __nvvm_round_f() goes away from zero. */
GPUQ_DEVICE float gpuq_rint(float v) {
        asm("cvt.rni.f32.f32 %0, %0;" : "+f"(v));
        return v;
}
GPUQ_DEVICE double gpuq_rint(double v) {
        asm("cvt.rni.f64.f64 %0, %0;" : "+d"(v));
        return v;
}
GPUQ_MATH(rint, gpuq_rint, gpuq_rint)
#undef GPUQ_MATH

GPUQ_DEVICE float rsqrtf(float v) {
        return 1.0f / sqrtf(v);
}
GPUQ_DEVICE float rsqrt(float v) {
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
GPUQ_DEVICE long abs(long v) {
        return v < 0 ? -v : v;
}
GPUQ_DEVICE long long abs(long long v) {
        return v < 0 ? -v : v;
}
GPUQ_DEVICE float abs(float v) {
        return fabsf(v);
}
GPUQ_DEVICE double abs(double v) {
        return fabs(v);
}
GPUQ_DEVICE long labs(long v) {
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
GPUQ_DEVICE bool isfinite(double v) {
        return fabs(v) < CUDART_INF;
}
GPUQ_DEVICE bool signbit(double v) {
        return __builtin_bit_cast(long long, v) < 0;
}
GPUQ_DEVICE float fmin(float a, float b) {
        return fminf(a, b);
}
GPUQ_DEVICE float fmax(float a, float b) {
        return fmaxf(a, b);
}
template <class T> GPUQ_DEVICE constexpr T min(T a, T b) {
        return b < a ? b : a;
}
template <class T> GPUQ_DEVICE constexpr T max(T a, T b) {
        return a < b ? b : a;
}
/* Of a number and NaN, the number. */
GPUQ_DEVICE float min(float a, float b) {
        return fminf(a, b);
}
GPUQ_DEVICE float max(float a, float b) {
        return fmaxf(a, b);
}
GPUQ_DEVICE double min(double a, double b) {
        return fmin(a, b);
}
GPUQ_DEVICE double max(double a, double b) {
        return fmax(a, b);
}
/* Of two types: in the one that they have together, behind those for it. */
template <class T, class U> GPUQ_DEVICE constexpr decltype(T() + U()) min(T a, U b) {
        return min((decltype(T() + U()))a, (decltype(T() + U()))b);
}
template <class T, class U> GPUQ_DEVICE constexpr decltype(T() + U()) max(T a, U b) {
        return max((decltype(T() + U()))a, (decltype(T() + U()))b);
}
GPUQ_DEVICE unsigned umin(unsigned a, unsigned b) {
        return min(a, b);
}
GPUQ_DEVICE unsigned umax(unsigned a, unsigned b) {
        return max(a, b);
}
GPUQ_DEVICE long long llmin(long long a, long long b) {
        return min(a, b);
}
GPUQ_DEVICE long long llmax(long long a, long long b) {
        return max(a, b);
}

/*
 * By each way of rounding: @r in CUDA's names, @n in clang's and PTX'. Sums and products in assembly: clang takes its own
 * __nvvm_mul_rn_f() for a plain product, and makes one fma() of that and a sum, which CUDA promises not to do.
 */
#define GPUQ_ROUNDED_BY(name, instruction, type, letter)                                           \
        GPUQ_DEVICE type name(type x, type y) {                                                    \
                type result;                                                                       \
                asm(instruction " %0, %1, %2;" : "=" letter(result) : letter(x), letter(y));       \
                return result;                                                                     \
        }
#define GPUQ_ROUNDED(prefix, type, bits, letter, suffix, r, n)                                     \
        GPUQ_ROUNDED_BY(__##prefix##add_##r, "add." #n ".f" bits, type, letter)                    \
        GPUQ_ROUNDED_BY(__##prefix##sub_##r, "sub." #n ".f" bits, type, letter)                    \
        GPUQ_ROUNDED_BY(__##prefix##mul_##r, "mul." #n ".f" bits, type, letter)                    \
        GPUQ_DEVICE type __##prefix##div_##r(type x, type y) {                                     \
                return __nvvm_div_##n##_##suffix(x, y);                                            \
        }                                                                                          \
        GPUQ_DEVICE type __##prefix##rcp_##r(type x) {                                             \
                return __nvvm_rcp_##n##_##suffix(x);                                               \
        }                                                                                          \
        GPUQ_DEVICE type __##prefix##sqrt_##r(type x) {                                            \
                return __nvvm_sqrt_##n##_##suffix(x);                                              \
        }
#define GPUQ_ALL_ROUNDED(r, n)                                                                     \
        GPUQ_ROUNDED(f, float, "32", "f", f, r, n)                                                 \
        GPUQ_ROUNDED(d, double, "64", "d", d, r, n)                                                \
        GPUQ_DEVICE float __fmaf_##r(float a, float b, float c) {                                  \
                return __nvvm_fma_##n##_f(a, b, c);                                                \
        }                                                                                          \
        GPUQ_DEVICE double __fma_##r(double a, double b, double c) {                               \
                return __nvvm_fma_##n##_d(a, b, c);                                                \
        }
GPUQ_ALL_ROUNDED(rn, rn)
GPUQ_ALL_ROUNDED(rz, rz)
GPUQ_ALL_ROUNDED(ru, rp)
GPUQ_ALL_ROUNDED(rd, rm)
#undef GPUQ_ALL_ROUNDED
#undef GPUQ_ROUNDED
#undef GPUQ_ROUNDED_BY
GPUQ_DEVICE float __frsqrt_rn(float v) {
        return (float)(1.0 / sqrt((double)v));
}
GPUQ_DEVICE float __saturatef(float v) {
        return __nvvm_saturate_f(v);
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
GPUQ_DEVICE float __log2f(float v) {
        return __nvvm_lg2_approx_f(v);
}
GPUQ_DEVICE float __log10f(float v) {
        return __nvvm_lg2_approx_f(v) * 0.3010299956639812f;
}
GPUQ_DEVICE float __exp10f(float v) {
        return __nvvm_ex2_approx_f(v * 3.3219280948873623f);
}
GPUQ_DEVICE float __powf(float a, float b) {
        return __nvvm_ex2_approx_f(b * __nvvm_lg2_approx_f(a));
}
GPUQ_DEVICE float __tanf(float v) {
        return __nvvm_div_approx_f(__nvvm_sin_approx_f(v), __nvvm_cos_approx_f(v));
}
GPUQ_DEVICE void __sincosf(float v, float *sine, float *cosine) {
        *sine = __nvvm_sin_approx_f(v);
        *cosine = __nvvm_cos_approx_f(v);
}
GPUQ_DEVICE float __fdividef(float a, float b) {
        return __nvvm_div_approx_f(a, b);
}
GPUQ_DEVICE float fdividef(float a, float b) {
        return a / b;
}

#ifdef __GPUQ_CPU__

/* The type double, for a template that is of some types only. */
template <bool> struct gpuq_double {};
template <> struct gpuq_double<true> { typedef double type; };
template <class T> struct gpuq_of_integer : gpuq_double<__is_integral(T)> {};
template <class T, class U>
struct gpuq_of_numbers : gpuq_double<__is_arithmetic(T) && __is_arithmetic(U)> {};

/* In C++ also of float, and of integers as of double. */
#define GPUQ_UNARY(name)                                                                           \
        extern "C" __device__ __attribute__((const)) float __nv_##name##f(float v);                \
        extern "C" __device__ __attribute__((const)) double __nv_##name(double v);                 \
        GPUQ_DEVICE float name##f(float v) {                                                       \
                return __nv_##name##f(v);                                                          \
        }                                                                                          \
        GPUQ_DEVICE float name(float v) {                                                          \
                return __nv_##name##f(v);                                                          \
        }                                                                                          \
        GPUQ_DEVICE double name(double v) {                                                        \
                return __nv_##name(v);                                                             \
        }                                                                                          \
        template <class T> GPUQ_DEVICE typename gpuq_of_integer<T>::type name(T v) {               \
                return __nv_##name((double)v);                                                     \
        }
#define GPUQ_BINARY(name)                                                                          \
        extern "C" __device__ __attribute__((const)) float __nv_##name##f(float a, float b);       \
        extern "C" __device__ __attribute__((const)) double __nv_##name(double a, double b);       \
        GPUQ_DEVICE float name##f(float a, float b) {                                              \
                return __nv_##name##f(a, b);                                                       \
        }                                                                                          \
        GPUQ_DEVICE float name(float a, float b) {                                                 \
                return __nv_##name##f(a, b);                                                       \
        }                                                                                          \
        GPUQ_DEVICE double name(double a, double b) {                                              \
                return __nv_##name(a, b);                                                          \
        }                                                                                          \
        template <class T, class U>                                                                \
        GPUQ_DEVICE typename gpuq_of_numbers<T, U>::type name(T a, U b) {                          \
                return __nv_##name((double)a, (double)b);                                          \
        }
#define GPUQ_FUNCTION(result, name, parameters, arguments)                                         \
        extern "C" __device__ result __nv_##name parameters;                                       \
        GPUQ_DEVICE result name parameters {                                                       \
                return __nv_##name arguments;                                                      \
        }
GPUQ_UNARY(acos)
GPUQ_UNARY(acosh)
GPUQ_UNARY(asin)
GPUQ_UNARY(asinh)
GPUQ_UNARY(atan)
GPUQ_UNARY(atanh)
GPUQ_UNARY(cbrt)
GPUQ_UNARY(cos)
GPUQ_UNARY(cosh)
GPUQ_UNARY(cospi)
GPUQ_UNARY(cyl_bessel_i0)
GPUQ_UNARY(cyl_bessel_i1)
GPUQ_UNARY(erf)
GPUQ_UNARY(erfc)
GPUQ_UNARY(erfcinv)
GPUQ_UNARY(erfcx)
GPUQ_UNARY(erfinv)
GPUQ_UNARY(exp)
GPUQ_UNARY(exp10)
GPUQ_UNARY(exp2)
GPUQ_UNARY(expm1)
GPUQ_UNARY(j0)
GPUQ_UNARY(j1)
GPUQ_UNARY(lgamma)
GPUQ_UNARY(log)
GPUQ_UNARY(log10)
GPUQ_UNARY(log1p)
GPUQ_UNARY(log2)
GPUQ_UNARY(logb)
GPUQ_UNARY(nearbyint)
GPUQ_UNARY(normcdf)
GPUQ_UNARY(normcdfinv)
GPUQ_UNARY(rcbrt)
GPUQ_UNARY(round)
GPUQ_UNARY(sin)
GPUQ_UNARY(sinh)
GPUQ_UNARY(sinpi)
GPUQ_UNARY(tan)
GPUQ_UNARY(tanh)
GPUQ_UNARY(tgamma)
GPUQ_UNARY(y0)
GPUQ_UNARY(y1)
GPUQ_BINARY(atan2)
GPUQ_BINARY(copysign)
GPUQ_BINARY(fdim)
GPUQ_BINARY(fmod)
GPUQ_BINARY(hypot)
GPUQ_BINARY(nextafter)
GPUQ_BINARY(pow)
GPUQ_BINARY(remainder)
GPUQ_BINARY(rhypot)
#define GPUQ_BOTH(type, suffix)                                                                    \
        GPUQ_FUNCTION(type, ldexp##suffix, (type v, int n), (v, n))                                \
        GPUQ_FUNCTION(type, scalbn##suffix, (type v, int n), (v, n))                               \
        GPUQ_FUNCTION(type, frexp##suffix, (type v, int *n), (v, n))                               \
        GPUQ_FUNCTION(type, modf##suffix, (type v, type * whole), (v, whole))                      \
        GPUQ_FUNCTION(type, jn##suffix, (int n, type v), (n, v))                                   \
        GPUQ_FUNCTION(type, yn##suffix, (int n, type v), (n, v))                                   \
        GPUQ_FUNCTION(int, ilogb##suffix, (type v), (v))                                           \
        GPUQ_FUNCTION(void, sincos##suffix, (type v, type * s, type * c), (v, s, c))               \
        GPUQ_FUNCTION(void, sincospi##suffix, (type v, type * s, type * c), (v, s, c))             \
        GPUQ_FUNCTION(type, remquo##suffix, (type a, type b, int *n), (a, b, n))                   \
        GPUQ_FUNCTION(type, norm3d##suffix, (type a, type b, type c), (a, b, c))                   \
        GPUQ_FUNCTION(type, norm4d##suffix, (type a, type b, type c, type d), (a, b, c, d))        \
        GPUQ_FUNCTION(type, rnorm3d##suffix, (type a, type b, type c), (a, b, c))                  \
        GPUQ_FUNCTION(type, rnorm4d##suffix, (type a, type b, type c, type d), (a, b, c, d))       \
        GPUQ_DEVICE long long llrint##suffix(type v) {                                             \
                return __##type##2ll_rn(v);                                                        \
        }                                                                                          \
        GPUQ_DEVICE long long llround##suffix(type v) {                                            \
                return __##type##2ll_rz(round##suffix(v));                                         \
        }                                                                                          \
        GPUQ_DEVICE long lrint##suffix(type v) {                                                   \
                return llrint##suffix(v);                                                          \
        }                                                                                          \
        GPUQ_DEVICE long lround##suffix(type v) {                                                  \
                return llround##suffix(v);                                                         \
        }
GPUQ_BOTH(float, f)
GPUQ_BOTH(double, )
#undef GPUQ_BOTH
#undef GPUQ_UNARY
#undef GPUQ_BINARY
#undef GPUQ_FUNCTION

namespace std {
#define GPUQ_STANDARD(name) using ::name;
GPUQ_STANDARD(acos)
GPUQ_STANDARD(asin)
GPUQ_STANDARD(atan)
GPUQ_STANDARD(atan2)
GPUQ_STANDARD(cbrt)
GPUQ_STANDARD(cos)
GPUQ_STANDARD(cosh)
GPUQ_STANDARD(erf)
GPUQ_STANDARD(erfc)
GPUQ_STANDARD(exp)
GPUQ_STANDARD(exp2)
GPUQ_STANDARD(expm1)
GPUQ_STANDARD(fmod)
GPUQ_STANDARD(hypot)
GPUQ_STANDARD(lgamma)
GPUQ_STANDARD(log)
GPUQ_STANDARD(log10)
GPUQ_STANDARD(log1p)
GPUQ_STANDARD(log2)
GPUQ_STANDARD(pow)
GPUQ_STANDARD(round)
GPUQ_STANDARD(sin)
GPUQ_STANDARD(sinh)
GPUQ_STANDARD(tan)
GPUQ_STANDARD(tanh)
GPUQ_STANDARD(tgamma)
#undef GPUQ_STANDARD
} // namespace std

#endif

namespace std {
using ::abs;
using ::ceil;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::max;
using ::min;
using ::rint;
using ::signbit;
using ::sqrt;
using ::trunc;
} // namespace std

/* ---- textures ---------------------------------------------------------------- */

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t; /* gpuq has none: a name for parameters */

/* What the instruction gives, as a type that a texture has. */
template <class T> struct GpuqTexel;
#define GPUQ_FETCH(register, out, instruction, ...)                                                \
        register x, y, z, w;                                                                       \
        asm(instruction : "=" out(x), "=" out(y), "=" out(z), "=" out(w) : __VA_ARGS__);           \
        return of(x, y, z, w);
#define GPUQ_TEXEL(type, result, register, out, ...)                                               \
        template <> struct GpuqTexel<type> {                                                       \
                static __device__ __forceinline__ type of(register x, register y, register z,      \
                                                          register w) {                            \
                        return __VA_ARGS__;                                                        \
                }                                                                                  \
                static __device__ __forceinline__ type fetch(cudaTextureObject_t t, int i) {       \
                        GPUQ_FETCH(register, out,                                                  \
                                   "tex.1d.v4." result ".s32 {%0, %1, %2, %3}, [%4, {%5}];",       \
                                   "l"(t), "r"(i))                                                 \
                }                                                                                  \
                static __device__ __forceinline__ type line(cudaTextureObject_t t, float i) {      \
                        GPUQ_FETCH(register, out,                                                  \
                                   "tex.1d.v4." result ".f32 {%0, %1, %2, %3}, [%4, {%5}];",       \
                                   "l"(t), "f"(i))                                                 \
                }                                                                                  \
                static __device__ __forceinline__ type plane(cudaTextureObject_t t, float i,       \
                                                             float k) {                            \
                        GPUQ_FETCH(register, out,                                                  \
                                   "tex.2d.v4." result ".f32 {%0, %1, %2, %3}, [%4, {%5, %6}];",   \
                                   "l"(t), "f"(i), "f"(k))                                         \
                }                                                                                  \
        };
#define GPUQ_TEXELS(type, name, result, register, out)                                             \
        GPUQ_TEXEL(type, result, register, out, (type)x)                                           \
        GPUQ_TEXEL(name##1, result, register, out, {(type)x})                                      \
        GPUQ_TEXEL(name##2, result, register, out, {(type)x, (type)y})                             \
        GPUQ_TEXEL(name##4, result, register, out, {(type)x, (type)y, (type)z, (type)w})
GPUQ_TEXEL(char, "s32", int, "r", (char)x)
GPUQ_TEXELS(signed char, char, "s32", int, "r")
GPUQ_TEXELS(unsigned char, uchar, "u32", unsigned, "r")
GPUQ_TEXELS(short, short, "s32", int, "r")
GPUQ_TEXELS(unsigned short, ushort, "u32", unsigned, "r")
GPUQ_TEXELS(int, int, "s32", int, "r")
GPUQ_TEXELS(unsigned, uint, "u32", unsigned, "r")
GPUQ_TEXELS(float, float, "f32", float, "f")
#undef GPUQ_TEXELS
#undef GPUQ_TEXEL
#undef GPUQ_FETCH

template <class T> GPUQ_DEVICE T tex1Dfetch(cudaTextureObject_t texture, int x) {
        return GpuqTexel<T>::fetch(texture, x);
}
template <class T> GPUQ_DEVICE T tex1D(cudaTextureObject_t texture, float x) {
        return GpuqTexel<T>::line(texture, x);
}
template <class T> GPUQ_DEVICE T tex2D(cudaTextureObject_t texture, float x, float y) {
        return GpuqTexel<T>::plane(texture, x, y);
}
template <class T> GPUQ_DEVICE void tex1Dfetch(T *result, cudaTextureObject_t texture, int x) {
        *result = GpuqTexel<T>::fetch(texture, x);
}
template <class T> GPUQ_DEVICE void tex1D(T *result, cudaTextureObject_t texture, float x) {
        *result = GpuqTexel<T>::line(texture, x);
}
template <class T>
GPUQ_DEVICE void tex2D(T *result, cudaTextureObject_t texture, float x, float y) {
        *result = GpuqTexel<T>::plane(texture, x, y);
}

/* What gpuq has no textures or surfaces for: the instruction is refused, and its text says why. */
#define GPUQ_OTHER(name, parameters, instruction, ...)                                             \
        template <class T> GPUQ_DEVICE T name parameters {                                         \
                float texel;                                                                       \
                asm volatile("{ .reg .f32 a, b, c; " instruction " }"                              \
                             : "=f"(texel)                                                         \
                             : __VA_ARGS__);                                                       \
                return T();                                                                        \
        }
GPUQ_OTHER(tex3D, (cudaTextureObject_t t, float x, float y, float z),
           "tex.3d.v4.f32.f32 {%0, a, b, c}, [%1, {%2, %3, %4, %4}];", "l"(t), "f"(x), "f"(y),
           "f"(z))
GPUQ_OTHER(tex2DLod, (cudaTextureObject_t t, float x, float y, float level),
           "tex.level.2d.v4.f32.f32 {%0, a, b, c}, [%1, {%2, %3}], %4;", "l"(t), "f"(x), "f"(y),
           "f"(level))
GPUQ_OTHER(tex2DLayered, (cudaTextureObject_t t, float x, float y, int layer),
           "tex.a2d.v4.f32.f32 {%0, a, b, c}, [%1, {%4, %2, %3, %3}];", "l"(t), "f"(x), "f"(y),
           "r"(layer))
GPUQ_OTHER(tex2Dgather, (cudaTextureObject_t t, float x, float y, int = 0),
           "tld4.r.2d.v4.f32.f32 {%0, a, b, c}, [%1, {%2, %3}];", "l"(t), "f"(x), "f"(y))
GPUQ_OTHER(surf2Dread, (cudaSurfaceObject_t s, int x, int y),
           "suld.b.2d.b32.trap {%0}, [%1, {%2, %3}];", "l"(s), "r"(x), "r"(y))
#undef GPUQ_OTHER
template <class T> GPUQ_DEVICE void surf2Dwrite(T, cudaSurfaceObject_t s, int x, int y) {
        asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], {%1};" ::"l"(s), "r"(x), "r"(y));
}

/* ---- text ------------------------------------------------------------------- */

/* clang itself turns calls of printf() into the driver's vprintf. */
extern "C" __device__ int printf(const char *format, ...);
namespace std {
using ::printf;
}
extern "C" __device__ void *malloc(size_t n);
extern "C" __device__ void free(void *p);
extern "C" __device__ void __assertfail(const char *message, const char *file, unsigned line,
                                        const char *function, size_t char_size);
#ifdef NDEBUG
#define assert(e) ((void)0)
#else
#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __PRETTY_FUNCTION__, 1))
#endif

/* ---- memory ------------------------------------------------------------------- */

GPUQ_DEVICE void *gpuq_copy(void *to, const void *from, size_t n) {
        for (size_t i = 0; i < n; i++)
                ((char *)to)[i] = ((const char *)from)[i];
        return to;
}
GPUQ_DEVICE void *gpuq_set(void *to, int value, size_t n) {
        for (size_t i = 0; i < n; i++)
                ((char *)to)[i] = (char)value;
        return to;
}
/* Clang's own are calls of the host's library if the length is not constant. */
#define memcpy(to, from, n)                                                                        \
        (__builtin_constant_p(n) ? __builtin_memcpy(to, from, n) : gpuq_copy(to, from, n))
#define memset(to, value, n)                                                                       \
        (__builtin_constant_p(n) ? __builtin_memset(to, value, n) : gpuq_set(to, value, n))

/* Inline, so that a module without them has no functions of these names. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-new-delete"
__device__ inline void *operator new(size_t n) {
        return malloc(n);
}
__device__ inline void *operator new[](size_t n) {
        return malloc(n);
}
__device__ inline void operator delete(void *p) noexcept {
        free(p);
}
__device__ inline void operator delete[](void *p) noexcept {
        free(p);
}
__device__ inline void operator delete(void *p, size_t) noexcept {
        free(p);
}
__device__ inline void operator delete[](void *p, size_t) noexcept {
        free(p);
}
__device__ inline void *operator new(size_t, void *p) noexcept {
        return p;
}
__device__ inline void *operator new[](size_t, void *p) noexcept {
        return p;
}

#pragma clang diagnostic pop
/* In the table of a class with a function that is "= 0". */
extern "C" __device__ inline void __cxa_pure_virtual() {
        __trap();
}

#define GPUQ_SPACE(name, space)                                                                    \
        GPUQ_DEVICE size_t __cvta_generic_to_##name(const void *p) {                               \
                size_t address;                                                                    \
                asm("cvta.to." space ".u64 %0, %1;" : "=l"(address) : "l"(p));                     \
                return address;                                                                    \
        }                                                                                          \
        GPUQ_DEVICE void *__cvta_##name##_to_generic(size_t address) {                             \
                void *p;                                                                           \
                asm("cvta." space ".u64 %0, %1;" : "=l"(p) : "l"(address));                        \
                return p;                                                                          \
        }
GPUQ_SPACE(global, "global")
GPUQ_SPACE(shared, "shared")
GPUQ_SPACE(local, "local")
GPUQ_SPACE(constant, "const")
#undef GPUQ_SPACE

#undef GPUQ_DEVICE

#endif
