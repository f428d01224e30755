/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DELIVERY_H
#define GPUQ_SUPERVISOR_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* An entry in an outbox to a worker; embedded in jobs, so that sending a job needs no memory. */
typedef struct Delivery {
        uint32_t kind; /* 0: a job; other kinds are defined by workers/ */
        bool is_queued;
        TAILQ_ENTRY(Delivery) link;
} Delivery;

#endif
