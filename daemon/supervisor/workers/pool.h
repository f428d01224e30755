/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_POOL_H
#define GPUQ_SUPERVISOR_POOL_H

/*
 * Worker pool
 *
 * All worker processes, including probes, by the number under which the keeper knows them.
 */

#include <stdint.h>

#include "jobs.h"
#include "util/bump.h"

typedef struct Worker Worker;
typedef struct Workers Workers;

struct Workers {
        Engine *engine;
        Worker *table;
        uint32_t last_id;
        Bump *bump; /* memory for one message at a time */
};

#endif
