/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_ATOMIC_H
#define GPUQ_CPU_KERNEL_ATOMIC_H

/*
 * Atomic functions, each for the types that CUDA supports, and in three scopes. All three are the
 * same, because the host has no narrower scope than the system.
 */

/*
 * Replaces *p by what change makes of it. A thread that changes nothing may be waiting for another
 * thread of its block, which must then run.
 */
template <class T, class Change> static inline T gpuq_cpu_atomic(T *p, Change change) {
        T old, wanted;

        __atomic_load(p, &old, __ATOMIC_RELAXED);
        do
                wanted = change(old);
        while (!__atomic_compare_exchange(p, &old, &wanted, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
        if (!__builtin_memcmp(&old, &wanted, sizeof(T)))
                gpuq_cpu_image.runtime->relax(0);
        return old;
}

/* A thread that fails may be waiting for another thread of its block, which must then run. */
template <class T> static inline T gpuq_cpu_cas(T *p, T compare, T value) {
        T old = compare;

        if (!__atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                gpuq_cpu_image.runtime->relax(0);
        return old;
}

#define GPUQ_CPU_ATOMIC(T, name, expression)                                                       \
        static inline T atomic##name(T *p, T value) {                                              \
                return expression;                                                                 \
        }                                                                                          \
        static inline T atomic##name##_block(T *p, T value) {                                      \
                return expression;                                                                 \
        }                                                                                          \
        static inline T atomic##name##_system(T *p, T value) {                                     \
                return expression;                                                                 \
        }
#define GPUQ_CPU_CAS(T)                                                                            \
        static inline T atomicCAS(T *p, T compare, T value) {                                      \
                return gpuq_cpu_cas(p, compare, value);                                            \
        }                                                                                          \
        static inline T atomicCAS_block(T *p, T compare, T value) {                                \
                return gpuq_cpu_cas(p, compare, value);                                            \
        }                                                                                          \
        static inline T atomicCAS_system(T *p, T compare, T value) {                               \
                return gpuq_cpu_cas(p, compare, value);                                            \
        }
#define GPUQ_CPU_INTEGER(T)                                                                        \
        GPUQ_CPU_ATOMIC(T, Add, gpuq_cpu_atomic(p, [=](auto old) { return old + value; }))         \
        GPUQ_CPU_ATOMIC(T, Exch, gpuq_cpu_atomic(p, [=](auto) { return value; }))                  \
        GPUQ_CPU_ATOMIC(T, Min,                                                                    \
                        gpuq_cpu_atomic(p, [=](T old) { return value < old ? value : old; }))      \
        GPUQ_CPU_ATOMIC(T, Max,                                                                    \
                        gpuq_cpu_atomic(p, [=](T old) { return value > old ? value : old; }))      \
        GPUQ_CPU_ATOMIC(T, And, gpuq_cpu_atomic(p, [=](auto old) { return old & value; }))         \
        GPUQ_CPU_ATOMIC(T, Or, gpuq_cpu_atomic(p, [=](auto old) { return old | value; }))          \
        GPUQ_CPU_ATOMIC(T, Xor, gpuq_cpu_atomic(p, [=](auto old) { return old ^ value; }))         \
        GPUQ_CPU_CAS(T)
#define GPUQ_CPU_FLOAT(T)                                                                          \
        GPUQ_CPU_ATOMIC(T, Add, gpuq_cpu_atomic(p, [=](T old) { return old + value; }))            \
        GPUQ_CPU_ATOMIC(T, Exch, gpuq_cpu_atomic(p, [=](T) { return value; }))

GPUQ_CPU_INTEGER(int)
GPUQ_CPU_INTEGER(unsigned int)
GPUQ_CPU_INTEGER(long)
GPUQ_CPU_INTEGER(unsigned long)
GPUQ_CPU_INTEGER(long long)
GPUQ_CPU_INTEGER(unsigned long long)
GPUQ_CPU_FLOAT(float)
GPUQ_CPU_FLOAT(double)
GPUQ_CPU_CAS(unsigned short)

GPUQ_CPU_ATOMIC(int, Sub, gpuq_cpu_atomic(p, [=](auto old) { return old - value; }))
GPUQ_CPU_ATOMIC(unsigned int, Sub, gpuq_cpu_atomic(p, [=](auto old) { return old - value; }))
GPUQ_CPU_ATOMIC(unsigned int, Inc,
                gpuq_cpu_atomic(p, [=](unsigned int old) { return old >= value ? 0 : old + 1; }))
GPUQ_CPU_ATOMIC(unsigned int, Dec, gpuq_cpu_atomic(p, [=](unsigned int old) {
                        return old == 0 || old > value ? value : old - 1;
                }))

#undef GPUQ_CPU_ATOMIC
#undef GPUQ_CPU_CAS
#undef GPUQ_CPU_INTEGER
#undef GPUQ_CPU_FLOAT

#endif
