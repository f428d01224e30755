/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ORDER_ACCESS_H
#define GPUQ_SUPERVISOR_ORDER_ACCESS_H

/* One job's access to one range of an object. */

#include <stdbool.h>
#include <stdint.h>

typedef struct OrderAccess {
        uint64_t object;
        uint64_t offset;
        uint64_t length; /* 0: orders nothing; offset + length does not overflow */
        bool write;
} OrderAccess;

#endif
