/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_PARTS_H
#define GPUQ_JOBS_PARTS_H

/*
 * Parts
 *
 * Into how many parts scan and sort cut an array, which their kernels have in kernels/lanes.cuh, too. The result of
 * a scan depends on it in the last bits, so it depends on the length alone.
 */

#include <stdint.h>

#include "util/macro.h"

#define PARTS_TILE    4096u /* elements that a block works on at once */
#define PARTS_MAX     1024u
#define PARTS_THREADS 256u

static inline uint64_t parts_number(uint64_t n) {
        return MIN(n / PARTS_TILE + (n % PARTS_TILE > 0), (uint64_t)PARTS_MAX);
}

#endif
