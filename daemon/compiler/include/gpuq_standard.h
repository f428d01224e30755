/* SPDX-License-Identifier: Apache-2.0 */
/* What source uses without an include, as nvcc allows, which includes half of C++ itself. */
#pragma once
#ifdef __CUDACC_RTC__
#include <gpuq_types.h>
#endif
#include <stdint.h>

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>
