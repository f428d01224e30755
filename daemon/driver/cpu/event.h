/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_EVENT_H
#define GPUQ_CPU_EVENT_H

/*
 * Event
 *
 * A point in a stream. Records are counted, and a wait is for the count at the time of the call,
 * so recording again does not delay earlier waiters. Guarded by the context's lock; work in
 * streams holds references.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver/cpu/context.h"

typedef struct CUevent_st {
        uint32_t magic;
        Context *context;
        LIST_ENTRY(CUevent_st) link; /* context->events */
        _Atomic unsigned n_refs;
        bool timed;
        uint64_t recorded; /* calls of cuEventRecord() */
        uint64_t reached;  /* the last of them that a stream came to */
        int64_t time_ns;
} Event;

/** event_release() - the API's reference, and its place in the context's list. */
void event_release(Event *event);

#endif
