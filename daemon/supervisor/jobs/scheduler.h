/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SCHEDULER_H
#define GPUQ_SUPERVISOR_SCHEDULER_H

/*
 * Scheduler
 *
 * Chooses the job that runs next on each device: a user by fair share, then the highest
 * priority, then sessions in turn, as far as the worker has room and the device's gate
 * is open. What a decision costs does not depend on how many jobs wait.
 */

#include <stdint.h>

#include "engine.h"

/** scheduler_run() - dispatch what can be. */
void scheduler_run(Engine *engine);
/** scheduler_tick() - now and then: users who were over their GPU seconds may go on. */
void scheduler_tick(Engine *engine, uint64_t now_ns);

#endif
