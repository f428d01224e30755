/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_ACCESS_H
#define GPUQ_SUPERVISOR_ORDER_ACCESS_H

/* What one job does to one range of an object. */

#include <stdbool.h>
#include <stdint.h>

typedef struct OrderAccess {
        uint64_t object;
        uint64_t offset;
        uint64_t length; /* 0: nothing, orders nothing; offset + length does not overflow */
        bool write;
} OrderAccess;

#endif
