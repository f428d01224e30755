/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_WORKERS_EVICTION_H
#define GPUQ_SUPERVISOR_WORKERS_EVICTION_H

#include "outbox.h"
#include "eviction.h"
#include "worker.h"

#endif
