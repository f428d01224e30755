/* SPDX-License-Identifier: Apache-2.0 */
/* Names of glibc that programs use without an include. The header for clang has them already. */
#pragma once
#ifdef __CUDACC_RTC__
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long ssize_t;
/* The toolkit's cuda.h declares functions of the host, which NVRTC refuses. This is its guard; what kernels use of it: */
#define __cuda_cuda_h__
typedef unsigned long long CUdeviceptr;
/* nvcc takes it in C++17, too, in which it means nothing. */
#if __cplusplus >= 201703L
#define register
#endif
#endif
