/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_COMPILE_H
#define GPUQ_CPU_COMPILE_H

/*
 * The words of CUDA C++, for step 2 of image.h. Macros only: everything they
 * use was declared in step 1.
 */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)

/* A host thread runs its blocks one after the other, so shared memory of a block is
 * thread-local. */
#define __shared__ static thread_local

#define GPUQ_CPU_DYNAMIC(name, dims, ...)                                                          \
        static thread_local const gpuq_cpu_dynamic<__VA_ARGS__ dims> name =                        \
                (gpuq_cpu_dynamic<__VA_ARGS__ dims>)gpuq_cpu_image.runtime->shared()

#define GPUQ_CPU_KERNEL(function, name)     GPUQ_CPU_KERNEL_(function, name, __COUNTER__)
#define GPUQ_CPU_KERNEL_(function, name, n) GPUQ_CPU_KERNEL__(function, name, n)
#define GPUQ_CPU_KERNEL__(function, name, n)                                                       \
        static GpuqCpuEntry gpuq_cpu_entry_##n                                                     \
                __attribute__((used, aligned(8), section("gpuq_cpu_entries"))) =                   \
                        gpuq_cpu_kernel<decltype(+(function)), +(function)>::entry(name);          \
        static const auto gpuq_cpu_signature_##n                                                   \
                __attribute__((used, aligned(1), section(".gpuq.signature"))) =                    \
                        gpuq_cpu_kernel<decltype(+(function)), +(function)>::signature(name);

#endif
