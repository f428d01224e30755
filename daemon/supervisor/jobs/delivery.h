/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DELIVERY_H
#define GPUQ_SUPERVISOR_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A place in the list of what waits to be sent to a worker; embedded in jobs, so that sending one needs no memory. */
typedef struct Delivery {
        uint32_t kind; /* 0: a job; else as workers/ says */
        bool is_queued;
        TAILQ_ENTRY(Delivery) link;
} Delivery;

#endif
