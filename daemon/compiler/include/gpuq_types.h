/* SPDX-License-Identifier: Apache-2.0 */
/* Names of glibc that programs use without an include. The header for clang has them already. */
#pragma once
#ifdef __CUDACC_RTC__
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#endif
