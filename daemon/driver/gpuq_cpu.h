/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_H
#define GPUQ_CPU_H

/*
 * CUDA C++ for the host's compiler
 *
 * Included before a source in step 1 of cpu/image.h. Standard headers come
 * first and the words of CUDA after, so that the latter never meet the former.
 * What CUDA leaves undefined (uninitialised shared memory, races) is here what
 * the host makes of it. Not here: textures, half precision, inline PTX.
 */

#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <type_traits>
#include <utility>

#include "cpu/image.h"

#define __GPUQ_CPU__         1
#define __CUDACC__           1
#define __CUDA_ARCH__        900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 4

#define __align__(n)    __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __inline_hint__
#define __grid_constant__
#define __nv_pure__

#include "cpu/kernel/types.h"
#include "cpu/kernel/place.h"
#include "cpu/kernel/sync.h"
#include "cpu/kernel/atomic.h"
#include "cpu/kernel/bits.h"
#include "cpu/kernel/math.h"
#include "cpu/kernel/output.h"
#include "cpu/kernel/groups.h"
#include "cpu/kernel/entry.h"

#endif
