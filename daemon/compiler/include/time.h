/* SPDX-License-Identifier: Apache-2.0 */
/* clock() and clock_t are there without including anything; a kernel has no other clock. */
#pragma once
#ifdef __CUDACC_RTC__
typedef long long time_t; /* as libcu++ has it for NVRTC */
#else
typedef long time_t;
#endif
