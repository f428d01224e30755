/* SPDX-License-Identifier: Apache-2.0 */
/* Names that source has with nvcc without an include, as nvcc includes these headers itself. */
#pragma once
#include <gpuq_integers.h>

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
