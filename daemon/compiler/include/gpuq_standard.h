/* SPDX-License-Identifier: Apache-2.0 */
/* Names that source has with nvcc without an include, as nvcc includes these headers itself. */
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
