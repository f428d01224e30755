/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_BITS_H
#define GPUQ_CPU_KERNEL_BITS_H

/*
 * Bits, integers, conversions, and loads with a cache hint.
 */

static inline int __popc(unsigned int x) {
        return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x) {
        return __builtin_popcountll(x);
}
static inline int __clz(int x) {
        return x ? __builtin_clz((unsigned int)x) : 32;
}
static inline int __clzll(long long x) {
        return x ? __builtin_clzll((unsigned long long)x) : 64;
}
static inline int __ffs(int x) {
        return __builtin_ffs(x);
}
static inline int __ffsll(long long x) {
        return __builtin_ffsll(x);
}
static inline unsigned int __brev(unsigned int x) {
        x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
        x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
        x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
        return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
        return (unsigned long long)__brev((unsigned int)x) << 32 | __brev((unsigned int)(x >> 32));
}
static inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
        uint64_t bytes = (uint64_t)y << 32 | x;
        unsigned int result = 0;

        for (unsigned int i = 0; i < 4; i++)
                result |= (unsigned int)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
        return result;
}
static inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int n) {
        return (unsigned int)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
}
static inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int n) {
        return (unsigned int)(((uint64_t)high << 32 | low) >> (n & 31));
}

static inline int __mulhi(int x, int y) {
        return (int)((int64_t)x * y >> 32);
}
static inline unsigned int __umulhi(unsigned int x, unsigned int y) {
        return (unsigned int)((uint64_t)x * y >> 32);
}
static inline long long __mul64hi(long long x, long long y) {
        return (long long)((__int128)x * y >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
        return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) {
        return (int)((unsigned)(x << 8 >> 8) * (unsigned)(y << 8 >> 8));
}
static inline unsigned int __umul24(unsigned int x, unsigned int y) {
        return (x & 0xffffff) * (y & 0xffffff);
}
static inline unsigned int __sad(int x, int y, unsigned int z) {
        return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x);
}
static inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
        return z + (x > y ? x - y : y - x);
}
static inline int __hadd(int x, int y) {
        return (int)(((int64_t)x + y) >> 1);
}
static inline int __rhadd(int x, int y) {
        return (int)(((int64_t)x + y + 1) >> 1);
}
static inline unsigned int __uhadd(unsigned int x, unsigned int y) {
        return (unsigned int)(((uint64_t)x + y) >> 1);
}
static inline unsigned int __urhadd(unsigned int x, unsigned int y) {
        return (unsigned int)(((uint64_t)x + y + 1) >> 1);
}

template <class To, class From> static inline To gpuq_cpu_bits(From from) {
        static_assert(sizeof(To) == sizeof(From), "as many bits");
        To to;

        memcpy(&to, &from, sizeof(to));
        return to;
}
static inline int __float_as_int(float x) {
        return gpuq_cpu_bits<int>(x);
}
static inline unsigned int __float_as_uint(float x) {
        return gpuq_cpu_bits<unsigned int>(x);
}
static inline float __int_as_float(int x) {
        return gpuq_cpu_bits<float>(x);
}
static inline float __uint_as_float(unsigned int x) {
        return gpuq_cpu_bits<float>(x);
}
static inline long long __double_as_longlong(double x) {
        return gpuq_cpu_bits<long long>(x);
}
static inline double __longlong_as_double(long long x) {
        return gpuq_cpu_bits<double>(x);
}
static inline int __double2hiint(double x) {
        return (int)(gpuq_cpu_bits<uint64_t>(x) >> 32);
}
static inline int __double2loint(double x) {
        return (int)gpuq_cpu_bits<uint64_t>(x);
}
static inline double __hiloint2double(int high, int low) {
        return gpuq_cpu_bits<double>((uint64_t)(unsigned int)high << 32 | (unsigned int)low);
}

/* Out of range gives the nearest number, NaN gives 0: as the GPU converts. */
template <class To, class From> static inline To gpuq_cpu_convert(From x) {
        if (x != x)
                return 0;
        if (x <= (From)std::numeric_limits<To>::min())
                return std::numeric_limits<To>::min();
        if (x >= (From)std::numeric_limits<To>::max())
                return std::numeric_limits<To>::max();
        return (To)x;
}
#define GPUQ_CPU_CONVERT(from, From, to, To, rint, trunc, ceil, floor)                             \
        static inline To __##from##2##to##_rn(From x) {                                            \
                return gpuq_cpu_convert<To>(rint(x));                                              \
        }                                                                                          \
        static inline To __##from##2##to##_rz(From x) {                                            \
                return gpuq_cpu_convert<To>(trunc(x));                                             \
        }                                                                                          \
        static inline To __##from##2##to##_ru(From x) {                                            \
                return gpuq_cpu_convert<To>(ceil(x));                                              \
        }                                                                                          \
        static inline To __##from##2##to##_rd(From x) {                                            \
                return gpuq_cpu_convert<To>(floor(x));                                             \
        }
GPUQ_CPU_CONVERT(float, float, int, int, rintf, truncf, ceilf, floorf)
GPUQ_CPU_CONVERT(float, float, uint, unsigned int, rintf, truncf, ceilf, floorf)
GPUQ_CPU_CONVERT(float, float, ll, long long, rintf, truncf, ceilf, floorf)
GPUQ_CPU_CONVERT(float, float, ull, unsigned long long, rintf, truncf, ceilf, floorf)
GPUQ_CPU_CONVERT(double, double, int, int, ::rint, ::trunc, ::ceil, ::floor)
GPUQ_CPU_CONVERT(double, double, uint, unsigned int, ::rint, ::trunc, ::ceil, ::floor)
GPUQ_CPU_CONVERT(double, double, ll, long long, ::rint, ::trunc, ::ceil, ::floor)
GPUQ_CPU_CONVERT(double, double, ull, unsigned long long, ::rint, ::trunc, ::ceil, ::floor)
#undef GPUQ_CPU_CONVERT

static inline float __int2float_rn(int x) {
        return (float)x;
}
static inline float __uint2float_rn(unsigned int x) {
        return (float)x;
}
static inline float __ll2float_rn(long long x) {
        return (float)x;
}
static inline float __ull2float_rn(unsigned long long x) {
        return (float)x;
}
static inline double __int2double_rn(int x) {
        return x;
}
static inline double __uint2double_rn(unsigned int x) {
        return x;
}
static inline double __ll2double_rn(long long x) {
        return (double)x;
}
static inline double __ull2double_rn(unsigned long long x) {
        return (double)x;
}
static inline float __double2float_rn(double x) {
        return (float)x;
}

#define GPUQ_CPU_LOAD(name)                                                                        \
        template <class T> static inline T name(const T *p) {                                      \
                return *p;                                                                         \
        }
#define GPUQ_CPU_STORE(name)                                                                       \
        template <class T> static inline void name(T *p, T value) {                                \
                *p = value;                                                                        \
        }
GPUQ_CPU_LOAD(__ldg)
GPUQ_CPU_LOAD(__ldca)
GPUQ_CPU_LOAD(__ldcg)
GPUQ_CPU_LOAD(__ldcs)
GPUQ_CPU_LOAD(__ldlu)
GPUQ_CPU_LOAD(__ldcv)
GPUQ_CPU_STORE(__stwb)
GPUQ_CPU_STORE(__stcg)
GPUQ_CPU_STORE(__stcs)
GPUQ_CPU_STORE(__stwt)
#undef GPUQ_CPU_LOAD
#undef GPUQ_CPU_STORE

#endif
