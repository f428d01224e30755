/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_WORK_H
#define GPUQ_CPU_WORK_H

/*
 * Work
 *
 * One operation of a stream or of a node of a graph: a kernel, a copy, a fill, or an event's
 * record. It does not change after its creation, so streams and graphs can share it. Each kind
 * embeds this as its first member.
 */

#include <stdatomic.h>

#include "driver/cuda_types.h"
#include "util/macro.h"

struct CUstream_st;

typedef struct Work {
        _Atomic unsigned n_refs;
        /* in the stream's thread, without locks; what it gives is a fault of the context */
        CUresult (*run)(struct Work *work, struct CUstream_st *stream);
        void (*free)(struct Work *work);
} Work;

static inline Work *work_ref(Work *work) {
        work->n_refs++;
        return work;
}

static inline Work *work_unref(Work *work) {
        if (work && --work->n_refs == 0)
                work->free(work);
        return NULL;
}

DEFINE_CLEANUP(Work, work_unref)

#endif
