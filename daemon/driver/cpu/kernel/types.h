/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_TYPES_H
#define GPUQ_CPU_KERNEL_TYPES_H

/*
 * Vector types, with CUDA's sizes and alignments, and dim3.
 */

#define GPUQ_CPU_VECTOR_1(T, name)                                                                 \
        struct name##1 {                                                                           \
                T x;                                                                               \
        };                                                                                         \
        static inline name##1 make_##name##1(T x) {                                                \
                return {x};                                                                        \
        }
#define GPUQ_CPU_VECTOR_2(T, name)                                                                 \
        struct alignas(2 * sizeof(T)) name##2 {                                                    \
                T x, y;                                                                            \
        };                                                                                         \
        static inline name##2 make_##name##2(T x, T y) {                                           \
                return {x, y};                                                                     \
        }
#define GPUQ_CPU_VECTOR_3(T, name)                                                                 \
        struct name##3 {                                                                           \
                T x, y, z;                                                                         \
        };                                                                                         \
        static inline name##3 make_##name##3(T x, T y, T z) {                                      \
                return {x, y, z};                                                                  \
        }
#define GPUQ_CPU_VECTOR_4(T, name)                                                                 \
        struct alignas(sizeof(T) > 4 ? 16 : 4 * sizeof(T)) name##4 {                               \
                T x, y, z, w;                                                                      \
        };                                                                                         \
        static inline name##4 make_##name##4(T x, T y, T z, T w) {                                 \
                return {x, y, z, w};                                                               \
        }
#define GPUQ_CPU_VECTOR(T, name)                                                                   \
        GPUQ_CPU_VECTOR_1(T, name)                                                                 \
        GPUQ_CPU_VECTOR_2(T, name)                                                                 \
        GPUQ_CPU_VECTOR_3(T, name)                                                                 \
        GPUQ_CPU_VECTOR_4(T, name)

GPUQ_CPU_VECTOR(signed char, char)
GPUQ_CPU_VECTOR(unsigned char, uchar)
GPUQ_CPU_VECTOR(short, short)
GPUQ_CPU_VECTOR(unsigned short, ushort)
GPUQ_CPU_VECTOR(int, int)
GPUQ_CPU_VECTOR(long, long)
GPUQ_CPU_VECTOR(unsigned long, ulong)
GPUQ_CPU_VECTOR(long long, longlong)
GPUQ_CPU_VECTOR(unsigned long long, ulonglong)
GPUQ_CPU_VECTOR(float, float)
GPUQ_CPU_VECTOR(double, double)
GPUQ_CPU_VECTOR_1(unsigned int, uint)
GPUQ_CPU_VECTOR_2(unsigned int, uint)
GPUQ_CPU_VECTOR_4(unsigned int, uint)

/* threadIdx and its like have this type, and are kept by the driver. */
typedef GpuqCpuIndex uint3;
static inline uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z) {
        return {x, y, z};
}

struct dim3 {
        unsigned int x, y, z;

        constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
            : x(x_), y(y_), z(z_) {
        }
        constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {
        }
        constexpr operator uint3() const {
                return {x, y, z};
        }
};

#undef GPUQ_CPU_VECTOR
#undef GPUQ_CPU_VECTOR_1
#undef GPUQ_CPU_VECTOR_2
#undef GPUQ_CPU_VECTOR_3
#undef GPUQ_CPU_VECTOR_4

#endif
