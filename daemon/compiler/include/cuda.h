/* SPDX-License-Identifier: Apache-2.0 */
/* Of the driver's API, which is not for kernels, the type of an address. */
#pragma once
typedef unsigned long long CUdeviceptr;
