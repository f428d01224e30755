/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_OPERATION_H
#define GPUQ_WORKER_OPERATION_H

/*
 * Operation
 *
 * A library operation as a step of a program: what is computed, and where its arrays are.
 */

#include "worker/fft.h"
#include "worker/gemm.h"

typedef struct ProgramPlace {
        const CUdeviceptr *base; /* of a buffer or of a variable */
        size_t offset;           /* bytes */
} ProgramPlace;

/* By a library; where there is none, it becomes a launch. */
typedef struct ProgramGemm {
        Gemm gemm;
        ProgramPlace a, b, c;
        uint64_t c_extent; /* bytes, with what lies between its rows */
} ProgramGemm;

typedef struct ProgramFft {
        Fft fft;
        ProgramPlace from, to;
} ProgramFft;

/** place_address() - the current address. */
static inline CUdeviceptr place_address(const ProgramPlace *place) {
        return *place->base + place->offset;
}

#endif
